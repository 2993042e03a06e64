//! The table, its sources and its problems.

use super::value::Value;
use super::*;
use rules::Span;
use std::collections::BTreeSet;
use std::time::Duration;

fn env(pairs: &[(&str, &str)]) -> Sources {
    let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sources { env, ..Sources::default() }
}

/// Loads `text` as a file, and returns the problems as lines without the folder.
fn problems(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    std::fs::write(&path, text).unwrap();
    let prefix = format!("{}/", folder.path().display());
    check(&path).iter().map(|problem| problem.to_string().replace(&prefix, "")).collect()
}

#[test]
fn the_server_starts_with_no_file_at_all() {
    let config = Config::load(Sources::default()).unwrap();
    assert_eq!(config.server.listen, default_listen());
    assert_eq!(config.public_url(8080).as_str(), "http://localhost:8080");
    assert_eq!(config.token.access_ttl, Span::minutes(15));
    assert_eq!(config.limits.body_size, Size(65_536));
    assert_eq!(config.database(), Some(PathBuf::from("./data/portiere.db")));
    assert_eq!(&*config.master_key_file(), Path::new("./data/master.key"));
    assert!(config.proxy.trusted.is_empty() && config.listens_by_default());
    assert!(config.show().iter().all(|shown| shown.source == Source::Default));
}

#[test]
fn all_problems_come_at_once_each_with_its_line() {
    let found = problems(
        "listen = \"127.0.0.1:8080\"\n\n[token]\naccess_ttl = 900\nacess_ttl = \"5m\"\n\n[hash.argon2]\npasses = 0\n\
         [limits]\nbody_size = \"64 potatoes\"\n[store]\nsynchronous = \"off\"\n",
    );
    let expected = [
        "p.toml:5: token.acess_ttl: is not an option; did you mean token.access_ttl?",
        "p.toml:1: listen: expected a list, each an address with port such as \"127.0.0.1:8080\" or \"[::1]:8080\", found a string",
        "p.toml:12: store.synchronous: \"off\" is not one of \"full\", \"normal\"",
        "p.toml:8: hash.argon2.passes: must be between 1 and 64",
        "p.toml:4: token.access_ttl: expected a duration such as \"15m\" (units ms, s, m, h, d), found an integer",
        "p.toml:10: limits.body_size: \"64 potatoes\" is not a size such as \"64KiB\" (units B, KiB, MiB, GiB)",
    ];
    assert_eq!(found, expected);
}

#[test]
fn metrics_are_open_to_nobody_beyond_this_machine() {
    // red without the rule in checks.rs, together.
    let with = |addresses: &str| problems(&format!("[metrics]\nlisten = [{addresses}]\n"));
    assert_eq!(Config::load(Sources::default()).unwrap().metrics.listen, []);
    assert_eq!(with("'127.0.0.1:9464', '[::1]:9464'"), [""; 0]);
    for open in ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"] {
        let found = with(&format!("'127.0.0.1:9465', '{open}'"));
        assert_eq!(
            found,
            ["metrics.secret: is missing, but metrics.listen names an address that other machines can reach"]
        );
    }
    let open = "[metrics]\nlisten = ['0.0.0.0:9464']\nsecret = '/run/secret'\n";
    assert_eq!(problems(open), [""; 0]);
}

#[test]
fn what_a_collector_knows_us_by_is_never_sent_in_clear() {
    // Red without the rule in checks.rs, together.
    let with = |endpoint: &str| problems(&format!("[trace]\nheaders = '/run/headers'\nendpoint = '{endpoint}'\n"));
    for sealed in ["https://otel.test/v1/traces", "http://127.0.0.1:4318/", "http://[::1]:4318", "http://localhost/"] {
        assert_eq!(with(sealed), [""; 0], "{sealed}");
    }
    for open in ["http://otel.test:4318/v1/traces", "http://192.0.2.1/", "http://localhost.otel.test/"] {
        let why = "must be https, except on this machine: trace.headers would be sent in clear";
        assert_eq!(with(open), [format!("trace.endpoint: {why}")], "{open}");
    }
    assert_eq!(problems("[trace]\nendpoint = 'http://otel.test:4318/v1/traces'\n"), [""; 0]);
}

#[test]
fn a_port_has_one_use() {
    // Red without any of `of_addresses` in checks.rs, or without what `collide` says about every address and port 0.
    let with = |people: &str, workers: &str, metrics: &str| {
        let text =
            format!("listen = ['{people}']\n[workers]\nlisten = ['{workers}']\n[metrics]\nlisten = ['{metrics}']\n");
        let found = problems(&text).into_iter();
        found.filter(|problem| problem.contains("has an address")).collect::<Vec<_>>()
    };
    assert_eq!(with("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"), [""; 0]);
    assert_eq!(with("127.0.0.1:1", "127.0.0.2:1", "[::1]:1"), [""; 0]);
    assert_eq!(with("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"), [""; 0]);
    // Red without `both` in `covers`: alone, [::] includes IPv4, which net/listen.rs leaves to an address beside it.
    assert_eq!(with("[::]:3", "0.0.0.0:1", "127.0.0.1:3"), ["metrics.listen: has an address of listen"]);
    assert_eq!(with("[::]:3", "127.0.0.1:1", "0.0.0.0:3"), ["metrics.listen: has an address of listen"]);
    assert_eq!(with("127.0.0.2:3', '[::]:3", "127.0.0.1:1", "127.0.0.1:3"), [""; 0]);
    assert_eq!(
        with("127.0.0.1:3", "127.0.0.1:1", "[::ffff:127.0.0.1]:3"),
        ["metrics.listen: has an address of listen"]
    );
    assert_eq!(with("0.0.0.0:1", "127.0.0.1:1", "127.0.0.1:3"), ["workers.listen: has an address of listen"]);
    assert_eq!(with("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"), ["metrics.listen: has an address of listen"]);
    assert_eq!(with("127.0.0.1:1", "[::]:2", "[::1]:2"), ["metrics.listen: has an address of workers.listen"]);
}

#[test]
fn no_address_of_a_list_is_in_the_way_of_another() {
    // Red with a `no_twins` in checks.rs that finds only addresses that are written alike.
    let with = |listed: &str| problems(&format!("listen = [{listed}]\n"));
    for fits in [
        "'0.0.0.0:1', '[::]:1'",
        "'127.0.0.1:1', '[::]:1'",
        "'0.0.0.0:1', '[::1]:1'",
        "'127.0.0.1:1', '127.0.0.2:1'",
        "'0.0.0.0:1', '127.0.0.1:2'",
        "'127.0.0.1:0', '127.0.0.1:0'",
        "'[fe80::1%1]:1', '[fe80::1%2]:1'",
    ] {
        assert_eq!(with(fits), [""; 0], "{fits}");
    }
    for (one, other) in [("0.0.0.0:1", "127.0.0.1:1"), ("127.0.0.1:1", "0.0.0.0:1"), ("[::1]:1", "[::]:1")] {
        let why = format!("p.toml:1: listen: names {one} and {other}, which overlap: leave out one");
        assert_eq!(with(&format!("'{one}', '{other}'")), [why]);
    }
    assert_eq!(with("'[::1]:1', '[::1]:1'"), ["p.toml:1: listen: names [::1]:1 twice"]);
}

#[test]
fn unknown_keys_are_errors_wherever_they_stand() {
    assert_eq!(problems("store = 1"), ["p.toml:1: store: is a section, not an option"]);
    assert_eq!(
        problems("[tokens]\naccess_ttl = '1m'"),
        ["p.toml:2: tokens.access_ttl: is not an option; did you mean token.access_ttl?"]
    );
    assert_eq!(problems("[zebra]"), ["p.toml:1: zebra: is not an option"]);
    assert_eq!(problems("[data]\nx = 1"), ["p.toml:2: data.x: is not an option; did you mean data?"]);
    assert_eq!(problems("[hash]\n[hash.argon2]\n"), Vec::<String>::new());
}

#[test]
fn a_syntax_error_names_its_line_and_a_missing_file_its_path() {
    let found = problems("[store\nurl = 1\n[token]\naccess_ttl = 5\n");
    assert!(found.iter().any(|line| line.starts_with("p.toml:1: ")), "{found:?}");
    assert!(found.iter().any(|line| line.contains("token.access_ttl")), "{found:?}");
    let missing = check(Path::new("/nonexistent/p.toml"));
    assert!(missing[0].to_string().starts_with("/nonexistent/p.toml: cannot be read"), "{missing:?}");
}

#[test]
fn flags_override_variables_and_variables_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    std::fs::write(&path, "data = 'f'\nlisten = ['127.0.0.1:1']\n[store]\nurl = 'sqlite:file.db'\n").unwrap();
    let mut sources =
        env(&[("PORTIERE_DATA", "e"), ("PORTIERE_LISTEN", "127.0.0.1:2, [::1]:2"), ("PORTIERE_LOG_LEVEL", "")]);
    sources.file = Some(path);
    sources.flags = vec![("listen", "127.0.0.1:3".to_owned()), ("listen", "127.0.0.1:4".to_owned())];
    let config = Config::load(sources).unwrap();
    let shown: Vec<_> = config.show().into_iter().filter(|shown| shown.source != Source::Default).collect();
    let expected = [
        ("listen", "[\"127.0.0.1:3\", \"127.0.0.1:4\"]", Source::Flag),
        ("data", "\"e\"", Source::Env),
        ("store.url", "\"sqlite:file.db\"", Source::File),
    ];
    assert_eq!(shown.len(), expected.len());
    for (shown, (name, value, source)) in shown.iter().zip(expected) {
        assert_eq!((shown.name, shown.value.as_deref(), shown.source), (name, Some(value), source));
    }
    assert_eq!(config.database(), Some(PathBuf::from("e/file.db")));
}

#[test]
fn an_unknown_variable_warns_and_a_wrong_one_is_an_error() {
    let config = Config::load(env(&[("PORTIERE_STORE_ULR", "x"), ("PORTIERE_CONFIG", "y"), ("OTHER", "z")])).unwrap();
    assert_eq!(
        config.warnings,
        ["the environment variable PORTIERE_STORE_ULR is not an option; did you mean PORTIERE_STORE_URL?"]
    );
    // Red without OF_COMMANDS in config/mod.rs.
    let moving = [("PORTIERE_MOVE_FROM", "x"), ("PORTIERE_MOVE_TO", "y")];
    assert_eq!(Config::load(env(&moving)).unwrap().warnings, [""; 0]);
    let nearly = Config::load(env(&[("PORTIERE_MOVE_FORM", "x")])).unwrap();
    assert!(nearly.warnings[0].ends_with("; did you mean PORTIERE_MOVE_FROM?"), "{:?}", nearly.warnings);
    // Red where what all names begin with counts as likeness: PORTIERE_DATA would be meant.
    let other = Config::load(env(&[("PORTIERE_TAG", "x")])).unwrap();
    assert_eq!(other.warnings, ["the environment variable PORTIERE_TAG is not an option"]);
    let wrong = Config::load(env(&[("PORTIERE_SIGNUP_ENABLED", "yes"), ("PORTIERE_HASH_THREADS", "-1")])).unwrap_err();
    assert_eq!(
        wrong.iter().map(Problem::to_string).collect::<Vec<_>>(),
        [
            "PORTIERE_HASH_THREADS: hash.threads: -1 is not between 0 and 18446744073709551615",
            "PORTIERE_SIGNUP_ENABLED: signup.enabled: \"yes\" is neither true nor false",
        ]
    );
}

#[test]
fn what_kubernetes_makes_for_a_service_of_our_name_is_one_warning() {
    // Red without config/service_links.rs: a warning for each.
    let made = [
        ("PORTIERE_SERVICE_HOST", "10.0.0.1"),
        ("PORTIERE_SERVICE_PORT", "8080"),
        ("PORTIERE_SERVICE_PORT_HTTP", "8080"),
        ("PORTIERE_PORT", "tcp://10.0.0.1:8080"),
        ("PORTIERE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("PORTIERE_PORT_8080_TCP_PROTO", "tcp"),
        ("PORTIERE_PORT_8080_TCP_PORT", "8080"),
        ("PORTIERE_PORT_8080_TCP_ADDR", "10.0.0.1"),
    ];
    let warnings = |more: &[(&str, &str)]| Config::load(env(&[&made[..], more].concat())).unwrap().warnings;
    let told = warnings(&[]);
    assert_eq!(told.len(), 1, "{told:?}");
    let whole = ["PORTIERE_SERVICE_HOST and 7 like it", "a service named portiere;", "enableServiceLinks: false"];
    assert!(whole.iter().all(|part| told[0].contains(part)), "{told:?}");
    let told =
        warnings(&[("PORTIERE_DB_SERVICE_HOST", "10.0.0.2"), ("PORTIERE_DB_PORT_5432_TCP", "tcp://10.0.0.2:5432")]);
    assert!(told.len() == 1 && told[0].contains("and 9 like it"), "{told:?}");
    // A mistyped variable is told of by itself, and so is one that only looks like a service's.
    let told = warnings(&[("PORTIERE_STORE_ULR", "x"), ("PORTIERE_PORT_HTTP", "x")]);
    assert!(told.len() == 3 && told[0].contains("PORTIERE_STORE_ULR is not an option"), "{told:?}");
    let told = Config::load(env(&[("PORTIERE_PORT", "8080")])).unwrap().warnings;
    assert!(
        told.len() == 1 && told[0].starts_with("the environment variable PORTIERE_PORT is not an option"),
        "{told:?}"
    );
}

#[test]
fn the_shape_of_the_log_is_known_where_something_else_is_wrong() {
    let of = |pairs: &[(&str, &str)]| env(pairs).log_format();
    assert_eq!(of(&[("PORTIERE_LOG_FORMAT", "json"), ("PORTIERE_HASH_THREADS", "-1")]), LogFormat::Json);
    assert_eq!([of(&[("PORTIERE_LOG_FORMAT", "xml")]), of(&[])], [LogFormat::Text, LogFormat::Text]);
}

#[test]
fn what_is_not_utf_8_is_named_and_never_shown() {
    // Red without `unreadable` in config/mod.rs: the server would start on an empty database.
    use std::os::unix::ffi::OsStringExt;
    let os = |text: &[u8]| OsString::from_vec(text.to_vec());
    let all = [
        (os(b"PORTIERE_STORE_URL"), os(b"postgres://u:hunter\xff@db/d")),
        (os(b"PORTIERE_MOVE_FROM"), os(b"\xff")),
        (os(b"PORTIERE_\xff"), os(b"x")),
        (os(b"PORTIERE_DATA"), os("däta".as_bytes())),
        (os(b"OTHER"), os(b"\xff")),
    ];
    let unreadable = unreadable(all.into_iter());
    assert_eq!(unreadable, ["PORTIERE_STORE_URL", "PORTIERE_MOVE_FROM", "PORTIERE_\u{fffd}"]);
    let wrong = Config::load(Sources { unreadable, ..Sources::default() }).unwrap_err();
    let told: Vec<String> = wrong.iter().map(Problem::to_string).collect();
    assert!(told[0].starts_with("PORTIERE_STORE_URL: store.url: is not UTF-8"), "{told:?}");
    assert!(told[1].starts_with("PORTIERE_MOVE_FROM: is not UTF-8"), "{told:?}");
    assert_eq!((told.len(), told.concat().contains("hunter")), (3, false), "{told:?}");
}

#[test]
fn listening_to_the_world_as_localhost_warns() {
    let exposed = Config::load(env(&[("PORTIERE_LISTEN", "0.0.0.0:8080")])).unwrap();
    assert!(exposed.warnings[0].contains("public_url"), "{:?}", exposed.warnings);
    let named = [("PORTIERE_LISTEN", "0.0.0.0:8080"), ("PORTIERE_PUBLIC_URL", "https://login.example.com")];
    assert_eq!(Config::load(env(&named)).unwrap().warnings, Vec::<String>::new());
}

/// Red where a compose file names an option that does not exist, or a value that it cannot have.
#[test]
fn containers_are_configured_as_the_server_reads_it() {
    let text = |name: &str| {
        let path = format!("{}/../../deploy/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    // What an operator fills in for `${NAME:?how to make it}`, and what `${NAME:-otherwise}` stands for.
    let filled = |value: &str| {
        let secret = value.split("${").map(|part| match part.split_once('}') {
            Some((asked, rest)) => match asked.split_once(":-") {
                Some((_, otherwise)) => format!("{otherwise}{rest}"),
                None => format!("AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA={rest}"),
            },
            None => part.to_owned(),
        });
        secret.collect::<String>()
    };
    let settings = |text: &str, between: &str| -> Vec<(String, String)> {
        let lines = text.lines().map(|line| line.trim_start_matches("ENV ").trim().trim_end_matches(" \\"));
        let named = lines.filter(|line| line.starts_with("PORTIERE_")).filter_map(|line| line.split_once(between));
        named.map(|(name, value)| (name.to_owned(), filled(value.trim()))).collect()
    };
    let image = settings(&text("Dockerfile"), "=");
    assert_eq!(image.len(), 2, "{image:?}");
    for name in ["compose.yaml", "compose.postgres.yaml", "compose.galera.yaml"] {
        let mut env = settings(&text(name), ":");
        assert!(!env.is_empty(), "{name}");
        env.extend(image.clone());
        let config =
            Config::load(Sources { env, ..Sources::default() }).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        let others: Vec<_> = config.warnings.iter().filter(|warning| !warning.contains("public_url")).collect();
        assert_eq!(others, Vec::<&String>::new(), "{name}");
        assert_eq!(config.database().is_some(), name == "compose.yaml", "SQLite is for one node alone");
    }
}

#[test]
fn an_overridden_value_is_still_checked() {
    let mut sources = env(&[("PORTIERE_CODE_TTL", "11m")]);
    sources.flags = vec![("code.ttl", "30s".to_owned())];
    let wrong = Config::load(sources).unwrap_err();
    assert_eq!(wrong[0].to_string(), "PORTIERE_CODE_TTL: code.ttl: must be between 1s and 10m");
}

#[test]
fn what_holds_between_options_is_checked() {
    for (variables, option) in [
        (&[("PORTIERE_HASH_ARGON2_PASSES", "1")][..], "hash.argon2.memory_kib"),
        (&[("PORTIERE_HASH_MEMORY", "8MiB")], "hash.memory"),
        (&[("PORTIERE_REFRESH_IDLE", "91d")], "refresh.idle"),
        (&[("PORTIERE_SESSION_ABSOLUTE", "1h")], "session.idle"),
        (&[("PORTIERE_TLS_CERTIFICATE", "c.pem")], "tls.key"),
        (
            &[
                ("PORTIERE_KEYS_MASTER", "k"),
                ("PORTIERE_KEYS_MASTER_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
            ],
            "keys.master",
        ),
        (&[("PORTIERE_TLS_KEY", "k.pem")], "tls.certificate"),
        (&[("PORTIERE_STORE_KEY", "k.pem")], "store.certificate"),
        (&[("PORTIERE_AUDIT_SYSLOG_KEY", "k.pem")], "audit.syslog.certificate"),
        (&[("PORTIERE_AUDIT_HTTP_CERTIFICATE", "c.pem")], "audit.http.key"),
        (&[("PORTIERE_TRACE_CERTIFICATE", "c.pem")], "trace.key"),
        (&[("PORTIERE_STORE_URL", "mysql://u:p@db/d"), ("PORTIERE_STORE_PASSWORD_FILE", "p")], "store.password_file"),
        (&[("PORTIERE_THROTTLE_BASE_DELAY", "5m"), ("PORTIERE_THROTTLE_MAX_DELAY", "1m")], "throttle.base_delay"),
    ] {
        let wrong = Config::load(env(variables)).unwrap_err();
        assert_eq!(wrong.iter().map(|problem| problem.option.as_deref()).collect::<Vec<_>>(), [Some(option)]);
    }
    let weakest = env(&[("PORTIERE_HASH_ARGON2_MEMORY_KIB", "7168"), ("PORTIERE_HASH_ARGON2_PASSES", "5")]);
    assert!(Config::load(weakest).is_ok());
}

#[test]
fn replication_is_strict_only_where_it_can_be() {
    // red without of_replication in checks.rs.
    let strict = ("PORTIERE_STORE_REPLICATION", "strict");
    let postgres = ("PORTIERE_STORE_URL", "postgres://u@db/d");
    let with = |others: &[(&str, &str)]| Config::load(env(&[&[strict][..], others].concat()));
    assert!(!with(&[]).unwrap().without_server().is_empty(), "no file is a server");
    for others in
        [&[("PORTIERE_STORE_URL", "mysql://u@db/d")][..], &[postgres, ("PORTIERE_STORE_ACCEPT_LOSS", "commits")]]
    {
        let wrong = with(others).unwrap_err();
        let options: Vec<_> = wrong.iter().map(|problem| problem.option.as_deref()).collect();
        assert_eq!(options, [Some("store.replication")], "{others:?}");
    }
    assert_eq!(with(&[postgres]).unwrap().store.replication, Replication::Strict);
    let unsaid = Config::load(env(&[postgres])).unwrap();
    assert_eq!(unsaid.store.replication, Replication::Observed, "nobody is taken to have said so");
}

#[test]
fn what_is_said_of_a_database_server_needs_one() {
    // red without of_a_server in checks.rs; commands that a server carries out need no database, so reading succeeds.
    let judged = |given: &[(&'static str, &str)]| Config::load(env(given)).unwrap().without_server();
    for (variable, value, option) in [
        ("PORTIERE_STORE_PASSWORD_FILE", "password", "store.password_file"),
        ("PORTIERE_STORE_AUTHORITIES", "ca.pem", "store.authorities"),
        ("PORTIERE_STORE_ACCEPT_LOSS", "commits", "store.accept_loss"),
        ("PORTIERE_STORE_REPLICATION", "bounded", "store.replication"),
        ("PORTIERE_STORE_STATEMENTS", "unnamed", "store.statements"),
        ("PORTIERE_STORE_JOURNAL", "off", "store.journal"),
    ] {
        assert_eq!(
            judged(&[(variable, value)]),
            [format!("{option}: is about a database server, and store.url names none")]
        );
        assert!(judged(&[(variable, value), ("PORTIERE_STORE_URL", "postgres://u@db/d")]).is_empty());
    }
    // An option that is set to its default says nothing, and numbers do no harm.
    for (variable, value) in [
        ("PORTIERE_STORE_REPLICATION", "observed"),
        ("PORTIERE_STORE_ACCEPT_LOSS", ""),
        ("PORTIERE_STORE_STATEMENTS", "kept"),
        ("PORTIERE_STORE_JOURNAL", "auto"),
        ("PORTIERE_STORE_CONNECTIONS", "16"),
        ("PORTIERE_STORE_TIMEOUT", "20s"),
    ] {
        assert!(judged(&[(variable, value)]).is_empty(), "{variable}={value}");
    }
    let both = judged(&[("PORTIERE_STORE_CERTIFICATE", "c.pem"), ("PORTIERE_STORE_KEY", "k.pem")]);
    assert!(matches!(&both[..], [one] if one.starts_with("store.certificate: ")), "{both:?}");
}

#[test]
fn values_that_would_be_dangerous_are_refused() {
    for (name, value) in [
        ("PORTIERE_PROXY_TRUSTED", "0.0.0.0/0"),
        ("PORTIERE_PROXY_TRUSTED", "10.0.0.0/8,::/0"),
        ("PORTIERE_PROXY_TRUSTED", "*"),
        ("PORTIERE_LIMITS_EXEMPT_ADDRESSES", "0.0.0.0/0"),
        ("PORTIERE_LIMITS_EXEMPT_ADDRESSES", "10.0.0.0/8,::/0"),
        ("PORTIERE_PUBLIC_URL", "http://example.com"),
        ("PORTIERE_BRAND_NAME", "a\r\nSet-Cookie: b"),
        ("PORTIERE_BRAND_NAME", "  "),
        ("PORTIERE_PASSWORD_MIN_LENGTH", "7"),
        ("PORTIERE_STORE_URL", "sqlite::memory:"),
        ("PORTIERE_STORE_URL", "postgres://x"),
        ("PORTIERE_LISTEN", ","),
        ("PORTIERE_LISTEN", "127.0.0.1:1,127.0.0.1:1"),
        ("PORTIERE_LISTEN", "localhost:1"),
    ] {
        assert!(Config::load(env(&[(name, value)])).is_err(), "{name}={value}");
    }
}

#[test]
fn a_secret_is_never_shown() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let config = Config::load(env(&[("PORTIERE_KEYS_MASTER_KEY", key)])).unwrap();
    assert_eq!(config.master_key().unwrap()[31], 31);
    let shown = config.show().into_iter().find(|shown| shown.name == "keys.master_key").unwrap();
    assert_eq!((shown.value.as_deref(), shown.source), (Some("(hidden)"), Source::Env));
    assert!(!format!("{config:?}").contains(key));
    let wrong = Config::load(env(&[("PORTIERE_KEYS_MASTER_KEY", "c2hvcnQ=")])).unwrap_err();
    assert!(!format!("{wrong:?}").contains("c2hvcnQ"));
}

#[test]
fn durations_and_sizes_are_a_number_and_a_unit() {
    let word = |text: &str| Raw::Word(text.to_owned());
    for (text, seconds) in [("0s", 0), ("10s", 10), ("15m", 900), ("24h", 86_400), ("30d", 2_592_000), ("5000ms", 5)] {
        assert_eq!(Duration::parse(&word(text)), Ok(Duration::from_secs(seconds)), "{text}");
    }
    for bad in
        ["", "10", "s", "-1s", "1.5h", "1 h", "1H", "1h30m", "1w", "+1s", "99999999999999999999s", "999999999999d"]
    {
        assert!(Duration::parse(&word(bad)).is_err(), "{bad}");
    }
    for (text, bytes) in [("1B", 1), ("64KiB", 65_536), ("16MiB", 16_777_216), ("2GiB", 2_147_483_648)] {
        assert_eq!(Size::parse(&word(text)), Ok(Size(bytes)), "{text}");
    }
    for (seconds, text) in [(0, "\"0s\""), (90, "\"90s\""), (3600, "\"1h\""), (86_400, "\"1d\""), (90_000, "\"25h\"")] {
        assert_eq!(Duration::from_secs(seconds).show().as_deref(), Some(text));
    }
}

#[test]
fn the_example_says_the_defaults() {
    let defaults = Config::load(Sources::default()).unwrap();
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.contains("=    #") => rest.to_owned(),
        _ => line.to_owned(),
    };
    for text in [example(), example().lines().map(line).collect::<Vec<_>>().join("\n")] {
        let mut reader = Reader::default();
        file::parse("example", &text, &mut reader);
        let config = options::build(&mut reader);
        assert_eq!(reader.problems, []);
        assert_eq!(config.values(), defaults.values());
    }
}

#[test]
fn names_are_unique_in_every_spelling_and_documented() {
    let names: BTreeSet<&str> = declared().map(|option| option.name).collect();
    let variables: BTreeSet<String> = declared().map(|option| variable(option.name)).collect();
    assert_eq!((names.len(), variables.len()), (declared().count(), declared().count()));
    assert!(others().all(|other| !variables.contains(&other)));
    for option in declared() {
        assert!(option.doc.trim().ends_with('.'), "{}", option.name);
        assert_eq!((option.default)().is_some(), option.computed.is_empty(), "{}", option.name);
    }
}

#[test]
fn the_documentation_is_what_the_table_says() {
    crate::generated::is_current("config.md", None, &markdown());
}

#[test]
fn a_file_with_secrets_that_everybody_can_read_is_warned_of() {
    // red without secrets_for_all in mod.rs.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("portiere.toml");
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let warned = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let config = Config::load(Sources { file: Some(file.clone()), ..Sources::default() }).unwrap();
        config.warnings.iter().any(|warning| warning.contains("is open to everybody on this machine"))
    };
    let secret = format!("[keys]\nmaster_key = \"{key}\"\n");
    let url = "[store]\nurl = \"postgres://portiere:secret@db/portiere\"\n";
    assert!(warned(&secret, 0o644) && warned(url, 0o604));
    assert!(!warned(&secret, 0o640) && !warned(url, 0o600));
    let bare = "[store]\nurl = \"postgres://portiere@db/portiere\"\npassword_file = \"password\"\n";
    assert!(!warned("[store]\nreaders = 4\n", 0o644) && !warned(bare, 0o644));
}
