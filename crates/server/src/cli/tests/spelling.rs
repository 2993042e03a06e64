//! Variables whose names are nearly those of options.

use super::*;

/// Returns the configuration of a data folder beside a variable of that name.
fn beside(variable: &str, data: &Path) -> Config {
    let env = vec![(variable.to_owned(), "postgres://h/d".to_owned())];
    let flags = vec![("data", data.display().to_string()), ("hash.threads", "1".to_owned())];
    Config::load(Sources { env, flags, ..Sources::default() }).unwrap()
}

const BEGINNING: [&str; 5] = [
    "user add bob --password-stdin",
    "client add --id shop --redirect-uri https://a.test/cb",
    "group add staff",
    "setup-link",
    "migrate",
];

#[tokio::test]
async fn no_command_begins_a_database_beside_a_misspelled_variable() {
    // red without `spelled` in cli/reach.rs: the database would be made in a folder that nobody meant.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = beside("PORTIERE_STORE_ULR", &data);
    for line in BEGINNING {
        let asked = request(line, PASSWORD).unwrap();
        assert!(asked.begins(), "{line}");
        let refused = Reach::new(&config).ask(&asked).await.unwrap_err();
        assert_eq!(refused.exit_code(), 2, "{line}");
        let told = refused.told();
        assert!(told.contains("PORTIERE_STORE_ULR") && told.contains("did you mean PORTIERE_STORE_URL?"), "{told}");
        assert!(!data.exists(), "{line}: nothing is made");
    }
}

#[tokio::test]
async fn beside_a_variable_that_is_like_none_or_in_a_database_that_is_there_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, name) in [("PORTIERE_TAG", "ada"), ("PORTIERE_STORE_ULR", "bob")] {
        let config = beside(variable, folder.path());
        let mut operator = Operator::new(&config);
        operator.types(&format!("user add {name} --password-stdin"), PASSWORD).await.unwrap();
        operator.0.close().await;
    }
}
