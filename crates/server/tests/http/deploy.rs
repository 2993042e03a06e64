//! Manifests for Kubernetes and for Compose, as far as they can be tried without one: what they set is what the server reads.

use crate::support::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The variables that a text sets, a line each.
fn variables(text: &str, between: char) -> BTreeMap<String, String> {
    let lines = text.lines().map(|line| line.trim_start_matches("ENV ").trim().trim_end_matches(" \\"));
    let named = lines.filter(|line| line.starts_with("PORTIERE_")).filter_map(|line| line.split_once(between));
    named.map(|(name, value)| (name.to_owned(), filled(value.trim().trim_matches('"')))).collect()
}

/// What a shell puts in for `$(openssl rand -base64 32)`.
fn filled(value: &str) -> String {
    let is_made = value.starts_with("$(");
    if is_made { "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=".to_owned() } else { value.to_owned() }
}

#[test]
fn pods_are_configured_as_the_server_reads_it() {
    // red where a manifest, or the guide's Secret, names an option that there is not, or a value that it cannot have.
    let image = variables(&read("deploy/Dockerfile"), '=');
    let secret = variables(&read("docs/guide/kubernetes.md"), '=');
    assert_eq!(secret.len(), 2, "{secret:?}");
    let folder = tempfile::tempdir().unwrap();
    for (name, several) in [("one", false), ("several", true)] {
        let text = read(&format!("deploy/kubernetes/{name}.yaml"));
        let mut manifest = variables(&text, ':');
        assert!(manifest.len() >= 4, "{name}");
        // What a pod finds where the manifest mounts a Secret.
        let mounted = manifest.get_mut("PORTIERE_STORE_PASSWORD_FILE");
        assert_eq!(mounted.is_some(), several, "{name}");
        if let Some(file) = mounted {
            let at = Path::new(file.as_str());
            assert!(text.contains(&format!("mountPath: {}\n", at.parent().unwrap().display())), "{file}");
            let here = folder.path().join(at.file_name().unwrap());
            std::fs::write(&here, "word").unwrap();
            std::fs::set_permissions(&here, std::os::unix::fs::PermissionsExt::from_mode(0o440)).unwrap();
            *file = here.to_str().unwrap().to_owned();
        }
        let checked = program()
            .args(["config", "check", "--json"])
            .env_clear()
            .envs(image.iter().chain(&secret).chain(&manifest))
            .output()
            .unwrap();
        let told: Value = serde_json::from_slice(&checked.stdout).unwrap_or_default();
        assert_eq!((&told["problems"], &told["warnings"]), (&json!([]), &json!([])), "{name}: {checked:?}");
    }
}

#[test]
fn pods_may_do_no_more_than_they_need() {
    // red without a line that Kubernetes' standard `restricted` asks for, or that a start or an end goes wrong without.
    for name in ["one", "several"] {
        let manifest = read(&format!("deploy/kubernetes/{name}.yaml"));
        let lines: Vec<_> = manifest.lines().map(str::trim).collect();
        for line in [
            "enableServiceLinks: false",
            "automountServiceAccountToken: false",
            "terminationGracePeriodSeconds: 40",
            "runAsNonRoot: true",
            "fsGroupChangePolicy: OnRootMismatch",
            "type: RuntimeDefault",
            "allowPrivilegeEscalation: false",
            "readOnlyRootFilesystem: true",
            "drop: [ALL]",
        ] {
            assert!(lines.contains(&line), "{name}: {line}");
        }
        let asks = |path: &str| lines.iter().filter(|line| **line == format!("path: {path}")).count();
        assert_eq!((asks("/healthz"), asks("/readyz")), (2, 1), "{name}: a pod is not ended for its database");
        // A folder below the mount is the server's alone, whoever the mount belongs to.
        let mount = lines.iter().find_map(|line| line.strip_prefix("mountPath: ")).unwrap();
        let data = &variables(&manifest, ':')["PORTIERE_DATA"];
        assert!(data.starts_with(&format!("{mount}/")), "{name}: {data}");
    }
}

/// Red where a block of the page writes `.env` without the public URL: the nodes would start under another one.
#[test]
fn every_environment_of_the_guide_to_containers_has_the_public_url() {
    let page = read("deploy/README.md");
    let written: Vec<_> = page.split("cat > deploy/.env) <<END\n").skip(1).collect();
    assert_eq!(written.len(), 2);
    for rest in written {
        let set = variables(rest.split("\nEND\n").next().unwrap(), '=');
        assert!(set.contains_key("PORTIERE_PUBLIC_URL") && set.len() == 3, "{set:?}");
    }
}

/// Red with a password in an environment, which `docker inspect` tells whoever may ask.
#[test]
fn compose_files_give_the_database_s_password_as_a_secret() {
    for (name, of_database) in [("postgres", "POSTGRES_PASSWORD_FILE"), ("galera", "MARIADB_PASSWORD_FILE")] {
        let text = read(&format!("deploy/compose.{name}.yaml"));
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for variable in ["PORTIERE_STORE_PASSWORD_FILE", of_database] {
            assert!(lines.contains(&&*format!("{variable}: /run/secrets/database_password")), "{name}: {variable}");
        }
        assert_eq!(lines.iter().filter(|line| **line == "secrets: [database_password]").count(), 2, "{name}");
        let url = lines.iter().find_map(|line| line.strip_prefix("PORTIERE_STORE_URL: ")).unwrap();
        assert!(url.contains("//portiere@") && !text.contains("DATABASE_PASSWORD"), "{name}: {url}");
    }
}
