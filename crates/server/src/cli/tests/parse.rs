//! What is typed, how it is understood, and what is said if it makes no sense.

use super::super::client::{self, metadata};
use super::super::{docs, guide, user};
use super::*;
use app::admin::clients::ClientSecret;
use clap::CommandFactory;
use rules::Secret;
use rules::oauth::client::{AccessFormat, AuthMethod, Client, Grant};
use serde_json::json;

fn registered(flags: &str) -> (Client, ClientSecret) {
    match request(&format!("client add --id app {flags}"), "").unwrap() {
        Request::Client(client::Command::Add(add)) => add.client(),
        other => panic!("{other:?}"),
    }
}

fn wrong(line: &str) -> String {
    match request(line, "") {
        Err(Failure::Use(line)) => line,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_table_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_and_every_argument_is_documented() {
    fn check(command: &clap::Command) {
        let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
        assert!(command.get_about().is_some(), "{name}");
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{name} {}", arg.get_id());
        }
        command.get_subcommands().filter(|below| below.get_name() != "help").for_each(check);
    }
    let mut program = Cli::command();
    program.build();
    check(&program);
}

#[test]
fn examples_are_not_broken_by_a_terminal() {
    // Red with a longer line: a terminal of 80 columns breaks it, and whoever copies it runs another command.
    fn check(command: &clap::Command) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= 78, "{name}: {line}");
        }
        command.get_subcommands().for_each(check);
    }
    let mut program = Cli::command();
    program.build();
    check(&program);
}

#[test]
fn a_confidential_client_gets_a_secret_and_the_usual_ways() {
    let (client, secret) = registered("--redirect-uri https://app.test/cb");
    assert!(matches!(secret, ClientSecret::Generated));
    assert_eq!(client.name, "app");
    assert_eq!(client.auth_methods, [AuthMethod::Basic, AuthMethod::Post]);
    assert_eq!(client.grants, [Grant::AuthorizationCode, Grant::RefreshToken]);
    assert_eq!(client.scope.to_string(), "openid profile email address phone offline_access groups");
    assert_eq!((client.native, client.pkce_optional, client.trusted), (false, false, false));
    assert_eq!((client.access_format, client.id_token_alg.name()), (AccessFormat::Jwt, "RS256"));
    assert_eq!(client.access_alg.name(), "ES256");
}

#[test]
fn a_public_client_is_native_when_its_redirect_uri_is() {
    for (uri, native) in [
        ("http://127.0.0.1/cb", true),
        ("http://[::1]:0/cb", true),
        ("http://localhost:3000/cb", true),
        ("com.example.app:/cb", true),
        ("https://app.test/cb", false),
    ] {
        let (client, secret) = registered(&format!("--public --redirect-uri {uri}"));
        assert!(matches!(secret, ClientSecret::Nothing));
        assert_eq!((client.is_public(), client.native), (true, native), "{uri}");
    }
    assert!(!registered("--redirect-uri http://localhost/cb").0.native, "a confidential one is asked");
    assert!(registered("--native --redirect-uri com.example.app:/cb").0.native);
}

#[test]
fn a_grant_goes_by_its_short_name_or_its_urn() {
    let (client, _) = registered("--public --grant device_code --grant refresh_token --grant device_code");
    assert_eq!(client.grants, [Grant::DeviceCode, Grant::RefreshToken]);
    let (client, _) = registered("--public --grant urn:ietf:params:oauth:grant-type:device_code");
    assert_eq!(client.grants, [Grant::DeviceCode]);
    assert!(wrong("client add --id app --grant password").contains("client_credentials"));
}

#[test]
fn scopes_are_those_given_and_standard_ones_need_a_person() {
    let (client, _) = registered("--grant client_credentials --scope jobs:run --scope jobs:list");
    assert_eq!(client.scope.to_string(), "jobs:run jobs:list");
    let (client, _) = registered("--scope jobs:run jobs:list --grant client_credentials");
    assert_eq!(client.scope.to_string(), "jobs:run jobs:list");
    assert!(registered("--grant client_credentials").0.scope.is_empty());
    let (api, _) = registered("--resource-server --resource https://api.test");
    assert!(api.grants.is_empty() && api.scope.is_empty());
}

#[test]
fn nobody_is_asked_for_a_password_of_nobody() {
    let first = request("user set-password ada --password-stdin", PASSWORD).unwrap().supposes().unwrap();
    assert!(matches!(first, Request::User(user::Command::Show(named)) if named.name == "ada"));
    assert!(request("user show ada", "").unwrap().supposes().is_none());
}

#[test]
fn numbers_are_refused_in_words() {
    for (line, why) in [
        ("audit list --limit many", "--limit <N>': it is not a whole number;"),
        ("audit list --limit 0", "--limit <N>': must be at least 1;"),
        ("audit tail -n 1001", "--lines <N>': must be from 0 to 1000;"),
        ("audit list --limit 99999999999999999999", "--limit <N>': it is too large;"),
        // Red without `line` in cli/audit/list.rs.
        ("audit list --before nope", "--before <ID>': not the id of a line"),
        // Red without `user::id` in cli/group.rs: other text sorts somewhere, too.
        ("group show staff --after ada", "--after <ID>': not the id of an account"),
        ("user list --limit 0", "--limit <N>': must be at least 1;"),
    ] {
        assert!(wrong(line).contains(why), "{line}: {}", wrong(line));
    }
}

#[test]
fn a_manual_page_says_what_options_take() {
    let page = docs::Man { command: vec!["user".into(), "add".into()], dir: None }.page().unwrap();
    let page = String::from_utf8(page).unwrap().replace("\\-", "-");
    assert!(
        page.contains("portiere user add") && page.contains("[--email <EMAIL>]") && page.contains(" <NAME>"),
        "{page}"
    );
}

#[test]
fn a_manual_page_shows_examples_as_they_are_typed() {
    // Red without `page` in cli/docs.rs: examples are stretched, words hyphenated, and the footer says "add".
    let page = |line: &str| {
        let command = line.split_whitespace().map(str::to_owned).collect();
        String::from_utf8(docs::Man { command, dir: None }.page().unwrap()).unwrap()
    };
    let client = page("client add");
    let title: Vec<&str> = client.lines().skip_while(|line| !line.starts_with(".TH")).take(3).collect();
    assert!(title[0].contains(&format!("1 \"\" \"portiere {}\"", env!("CARGO_PKG_VERSION"))), "{title:?}");
    assert_eq!(title[1..], [".nh", ".ad l"]);
    assert!(
        client.contains("\n.SH EXAMPLES\n.nf\nA web application:\n  portiere client add ")
            && client.ends_with("\n.fi\n")
    );
    assert!(!client.contains("EXTRA") && !client.contains("Examples:"));
    assert!(page("user set").contains(r"name=\*(Aq"), "quotes stay straight");
    let whole = page("");
    assert!(whole.contains("\n.fi\n.SH \"EXIT CODES\"\n0 done; 1 failed"), "{whole}");
    assert!(!page("group list").contains("EXAMPLES"));
}

#[test]
fn shells_offer_what_an_option_takes() {
    // Red with a plain function for yes_or_no (cli/change.rs), or without choices_for_fish (cli/docs.rs): files are
    // offered.
    let script = |shell| String::from_utf8(docs::completions(shell)).unwrap();
    let zsh = script(clap_complete::Shell::Zsh);
    assert!(zsh.contains("--trusted=[Whether to skip the consent page]::yes|no:(yes no)"), "{zsh}");
    let fish = script(clap_complete::Shell::Fish);
    let trusted = fish.lines().find(|line| line.contains("-l trusted -d 'Whether")).unwrap();
    assert!(trusted.contains(" -f -a \"yes") && !trusted.contains(" -r "), "{trusted}");
    // Red without `without_values_after_equals`: bash would offer `--trusted yes`, which is refused.
    let bash = script(clap_complete::Shell::Bash);
    assert!(bash.contains("--trusted ") && !bash.contains("yes no"), "{bash}");
    let shells = "__fish_portiere_using_subcommand completions\" -f -a \"bash elvish fish powershell zsh\"";
    assert!(fish.contains(shells), "{fish}");
    // Red without `with_names`: after `man` and `lab run`, files are offered.
    assert!(bash.contains("lanes") && bash.contains("rotate-secret"), "{bash}");
    let of = |using: &str| {
        fish.lines().find(|line| line.contains(&format!("\"__fish_portiere_using_subcommand {using}\" -f -a")))
    };
    assert!(of("man").is_some_and(|line| line.contains(" rotate-secret ")), "{fish}");
    let run = of("lab; and __fish_seen_subcommand_from run");
    assert!(run.is_some_and(|line| line.contains("lanes") && line.contains("workers")), "{fish}");
    assert!(zsh.contains("lanes"), "{zsh}");
    // Red without `streams` in cli/audit/stream.rs.
    for command in ["stream", "skip", "forget"] {
        let stream = of(&format!("audit; and __fish_seen_subcommand_from {command}"));
        assert!(stream.is_some_and(|line| line.contains("\"syslog http\"")), "{command}: {fish}");
    }
}

#[test]
fn shells_offer_files_only_where_a_file_is_meant() {
    // Red without `without_files` in cli/docs.rs: bash offers files after any option whose values it does not know.
    let bash = String::from_utf8(docs::completions(clap_complete::Shell::Bash)).unwrap();
    let (mut option, mut files) = ("", std::collections::BTreeSet::new());
    for line in bash.lines().map(str::trim) {
        match line.strip_suffix(')').filter(|case| case.starts_with('-')) {
            Some(case) => option = case,
            None if line.contains("compgen -f") => {
                files.insert(option);
            }
            None => {}
        }
    }
    let of_files = "--ca --config --from --head --html --jwks --markdown --output --prediction --save --users";
    let endings = ["-file", "-authorities", "-certificate", "-key"];
    let is_meant = |option: &str| {
        endings.iter().any(|ending| option.ends_with(ending)) || of_files.split(' ').any(|known| known == option)
    };
    assert!(files.contains("--config") && files.iter().all(|option| is_meant(option)), "{files:?}");
    for option in ["--user)", "--of)", "--after-block)", "--wait)", "--target)"] {
        let case = bash.split(option).nth(1).unwrap().trim_start();
        assert!(case.starts_with("COMPREPLY=(\"${cur}\")"), "{option} {case:.60}");
    }
}

#[test]
fn an_id_may_begin_with_a_hyphen() {
    // After an equals sign: a separate word may be the next option, if the ID was forgotten.
    assert!(wrong("client add --id --public --redirect-uri https://app.test/cb").contains("--id"));
    match request("client add --id=-x --public --redirect-uri https://app.test/cb", "").unwrap() {
        Request::Client(client::Command::Add(add)) => assert_eq!(add.id, "-x"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_contradicts_itself_is_wrong_use() {
    for line in [
        "client add --id app --public --secret-stdin",
        "client add --id app --public --jwks keys.json",
        "client add --id app --public --auth-method client_secret_basic",
        "client add --id app --auth-method private_key_jwt --secret-stdin",
        "client add --id app --jwks /nonexistent/keys.json",
        "client add --id app --id-token-alg PS256",
        "client add --id app --id-token-alg none",
        "client add --id app --auth-method client_secret_jwt",
        "client add --id app --pkce plain",
        "client add",
        "client set shop",
        "client set --trusted",
        "client set shop --trusted=perhaps",
        "client set shop --scope a --add-scope b",
        "client set shop --grant password",
        // Red without `contradiction` in cli/table.rs: --json was ignored.
        "audit export --format csv --json",
        "user add ada --email a@b.test",
        "user add ada --role boss --password-stdin",
        "user add ada --password secret",
        "user set ada name",
        "user set ada",
        "events list --limit 0",
        "keys",
        "frobnicate",
        "",
    ] {
        let said = wrong(line);
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(!said.contains("  ") && !said.starts_with("error"), "{line}: {said}");
    }
    assert_eq!(
        wrong("client add --name x"),
        "the following required arguments were not provided: --id <ID>; try: portiere client add --help"
    );
    assert!(wrong("usr list").ends_with("try: portiere --help"), "{}", wrong("usr list"));
}

#[test]
fn a_key_set_is_read_and_chooses_its_method() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": "k",
        "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM" });
    std::fs::write(&file, json!({ "keys": [key] }).to_string()).unwrap();
    let (client, secret) = registered(&format!("--jwks {} --redirect-uri https://app.test/cb", file.display()));
    assert!(matches!(secret, ClientSecret::Nothing));
    assert_eq!(client.auth_methods, [AuthMethod::PrivateKeyJwt]);
    assert_eq!(client.jwks.map(|set| set.keys.len()), Some(1));
    let unused = wrong(&format!("client add --id app --auth-method client_secret_basic --jwks {}", file.display()));
    assert!(unused.contains("does not authenticate with a key"), "{unused}");
    let private = json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0" }] });
    std::fs::write(&file, private.to_string()).unwrap();
    assert!(wrong(&format!("client add --id app --jwks {}", file.display())).contains("private"));
}

#[test]
fn clients_have_the_field_names_of_rfc_7591() {
    let (mut client, _) = registered("--redirect-uri https://app.test/cb --trusted");
    client.created = rules::Time::from_seconds(1_700_000_000);
    let expected = json!({
        "access_token_format": "jwt",
        "access_token_signed_response_alg": "ES256",
        "access_token_typ": "at+jwt",
        "application_type": "web",
        "assertion_aud_endpoint": false,
        "claims_in_id_token": false,
        "client_id": "app",
        "client_id_issued_at": 1_700_000_000,
        "client_name": "app",
        "client_secret": "told once",
        "client_secret_expires_at": 0,
        "disabled": false,
        "first_party": false,
        "grant_types": ["authorization_code", "refresh_token"],
        "id_token_on_refresh": true,
        "id_token_signed_response_alg": "RS256",
        "post_logout_redirect_uris": [],
        "redirect_uris": ["https://app.test/cb"],
        "require_pkce": true,
        "resource_server": false,
        "resources": [],
        "response_types": ["code"],
        "scope": "openid profile email address phone offline_access groups",
        "token_endpoint_auth_method": "client_secret_basic",
        "token_endpoint_auth_methods": ["client_secret_basic", "client_secret_post"],
        "trusted": true,
    });
    assert_eq!(metadata(&client, Some(&Secret::new("told once"))), expected);
    assert!(metadata(&client, None).get("client_secret").is_none());
}

#[test]
fn a_request_survives_the_socket() {
    let typed = request("user add ada --email a@b.test --role admin --password-stdin", PASSWORD).unwrap();
    let sent = serde_json::to_string(&typed).unwrap();
    let Request::User(super::super::user::Command::Add(add)) = serde_json::from_str(&sent).unwrap() else {
        panic!("{sent}")
    };
    assert_eq!(add.password.unwrap().reveal(), PASSWORD.trim_end());
    assert!(!format!("{typed:?}").contains("horse"), "no secret is printed by accident");
}

#[test]
fn a_secret_is_cut_of_one_line_break_and_never_printed() {
    let Request::Client(client::Command::Add(add)) =
        request("client add --id app --secret-stdin --redirect-uri https://a.test/", "sec ret\n").unwrap()
    else {
        panic!("client add")
    };
    let (_, ClientSecret::Given(secret)) = add.client() else { panic!("given") };
    assert_eq!(secret.reveal(), "sec ret");
}

#[test]
fn manual_pages_and_completions_come_from_the_table() {
    let Ok(Cli { command: Command::Man(man), .. }) = cli("man client add") else { panic!("man") };
    let page = String::from_utf8(man.page().unwrap()).unwrap();
    assert!(page.contains("redirect\\-uri") && page.contains("portiere"), "{page}");
    let Ok(Cli { command: Command::Man(man), .. }) = cli("man frobnicate") else { panic!("man") };
    assert!(matches!(man.page(), Err(Failure::Use(_))));
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let script = String::from_utf8(docs::completions(shell)).unwrap();
        assert!(script.contains("rotate-secret") && script.contains("events"), "{shell}");
        // Red without without_hidden in cli/docs.rs.
        assert!(!script.contains("guard"), "{shell}");
    }
}

#[test]
fn what_the_program_asks_of_itself_is_nobodys_to_see() {
    // Red without is_hide_set in cli/table.rs, missing, and in cli/guide.rs, commands.
    let Err(NoCommand::Wrong { why: Failure::Use(line), as_json: false }) = cli("lab") else { panic!("lab") };
    assert!(line.contains("run") && !line.contains("guard"), "{line}");
    assert!(!guide::markdown().contains("lab guard"));
}

#[test]
fn manual_pages_are_written_into_a_folder_that_is_made() {
    // Red without create_dir_all in cli/docs.rs.
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let Ok(Cli { command: Command::Man(man), .. }) = cli(&format!("man --dir {}", pages.display())) else {
        panic!("man")
    };
    man.page().unwrap();
    assert!(pages.join("portiere-client-add.1").exists());
    // Red without disable_help_subcommand in cli/docs.rs, before `build`.
    let named = std::fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    let needless: Vec<String> = named.filter(|name| name.contains("-help") || name.contains("-guard")).collect();
    assert_eq!(needless, [""; 0]);
    for line in ["man lab guard", "man help", "man client help"] {
        let Ok(Cli { command: Command::Man(man), .. }) = cli(line) else { panic!("{line}") };
        assert!(matches!(man.page(), Err(Failure::Use(_))), "{line}");
    }
}

#[test]
fn the_guide_says_what_the_table_says() {
    crate::generated::is_current("guide/commands.md", None, &guide::markdown());
}

#[test]
fn whoever_asks_changes_nothing_and_whoever_changes_something_does_not_only_ask() {
    // Red without a command in `is_question`: where no answer comes, a user of it would be left in doubt.
    for (line, asks) in [
        ("ready", true),
        ("profile", true),
        ("user list", true),
        ("user hashes", true),
        ("user show ada", true),
        ("client list", true),
        ("client show shop", true),
        ("group list", true),
        ("keys list", true),
        ("audit list", true),
        ("audit status", true),
        ("fence status", true),
        ("node list", true),
        ("verifier status", true),
        ("verifier list", true),
        ("user disable ada", false),
        ("client remove shop", false),
        ("keys rotate", false),
        ("setup-link", false),
        ("migrate", false),
        ("backup /tmp/copy.db", false),
    ] {
        assert_eq!(request(line, "").unwrap().is_question(), asks, "{line}");
    }
}
