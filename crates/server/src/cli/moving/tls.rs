//! The TLS files of each end of a move: each server may have its own authority, and require its own certificate.

use crate::config::{Config, Raw, SecretFile, Value as _};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The TLS files of the source.
#[derive(Clone, Debug, Default, Args)]
pub struct OfSource {
    /// PEM file with the authorities that may vouch for the source [default: store.authorities]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from_authorities: Option<PathBuf>,
    /// PEM file with the certificate to show to the source [default: store.certificate]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "from_key")]
    from_certificate: Option<PathBuf>,
    /// PEM file with the private key of that certificate [default: store.key]
    #[arg(long, value_name = "FILE", value_parser = secret_file, value_hint = ValueHint::FilePath)]
    #[arg(requires = "from_certificate")]
    from_key: Option<SecretFile>,
}

/// The TLS files of the target.
#[derive(Clone, Debug, Default, Args)]
pub struct OfTarget {
    /// PEM file with the authorities that may vouch for the target [default: store.authorities]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to_authorities: Option<PathBuf>,
    /// PEM file with the certificate to show to the target [default: store.certificate]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "to_key")]
    to_certificate: Option<PathBuf>,
    /// PEM file with the private key of that certificate [default: store.key]
    #[arg(long, value_name = "FILE", value_parser = secret_file, value_hint = ValueHint::FilePath)]
    #[arg(requires = "to_certificate")]
    to_key: Option<SecretFile>,
}

/// Parses the path of a file whose name may be the secret itself.
pub fn secret_file(text: &str) -> Result<SecretFile, String> {
    SecretFile::parse(&Raw::Word(text.to_owned()))
}

/// The TLS files that were given for one end; those of `store` take the place of others.
#[derive(Clone, Debug, Default)]
pub struct Given {
    authorities: Option<PathBuf>,
    pair: Option<(PathBuf, SecretFile)>,
}

impl From<OfSource> for Given {
    fn from(OfSource { from_authorities, from_certificate, from_key }: OfSource) -> Self {
        Given { authorities: from_authorities, pair: from_certificate.zip(from_key) }
    }
}

impl From<OfTarget> for Given {
    fn from(OfTarget { to_authorities, to_certificate, to_key }: OfTarget) -> Self {
        Given { authorities: to_authorities, pair: to_certificate.zip(to_key) }
    }
}

impl Given {
    /// Whether there are any.
    pub fn is_some(&self) -> bool {
        self.authorities.is_some() || self.pair.is_some()
    }

    /// Puts the files where a connection takes them from.
    pub fn over(self, config: &mut Config) {
        if self.authorities.is_some() {
            config.store.authorities = self.authorities;
        }
        if let Some((certificate, key)) = self.pair {
            (config.store.certificate, config.store.key) = (Some(certificate), Some(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Failure, StoreUrl, way};
    use super::*;
    use crate::config::Sources;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        source: OfSource,
        #[command(flatten)]
        target: OfTarget,
    }

    /// Returns the files for the source and for the target.
    fn files(line: &str) -> [[Option<String>; 3]; 2] {
        let line = Line::try_parse_from(format!("move {line}").split_whitespace()).unwrap();
        [Given::from(line.source), Given::from(line.target)].map(|given| {
            let mut config = Config::load(Sources::default()).unwrap();
            config.store.authorities = Some("store-ca".into());
            config.store.certificate = Some("store-chain".into());
            given.over(&mut config);
            let text = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
            let key = config.store.key.as_ref().map(|key| key.to_path_buf());
            [text(&config.store.authorities), text(&config.store.certificate), text(&key)]
        })
    }

    #[test]
    fn each_end_has_the_files_that_were_given_for_it_and_those_of_store_otherwise() {
        // Red without `over` in ends.rs: one end would get the other's certificate.
        let told = |files: [&str; 3]| files.map(|file| Some(file.to_owned()).filter(|file| !file.is_empty()));
        let ours = ["store-ca", "store-chain", ""];
        assert_eq!(files(""), [told(ours), told(ours)]);
        let line = "--to-authorities b-ca --to-certificate b-chain --to-key b-key --from-authorities a-ca";
        assert_eq!(files(line), [told(["a-ca", "store-chain", ""]), told(["b-ca", "b-chain", "b-key"])]);
        let line = "--from-certificate a-chain --from-key a-key";
        assert_eq!(files(line), [told(["store-ca", "a-chain", "a-key"]), told(ours)]);
        for alone in ["--from-key k", "--from-certificate c", "--to-key k", "--to-certificate c"] {
            assert!(Line::try_parse_from(format!("move {alone}").split_whitespace()).is_err(), "{alone}");
        }
    }

    #[test]
    fn a_file_takes_no_tls_files() {
        // Red without `is_some` in `way`: they would be ignored.
        let line = Line::try_parse_from(["move", "--to-authorities", "ca"]).unwrap();
        let to = |url: &str, given| way(StoreUrl::parse(&Raw::Word(url.to_owned())).unwrap(), None, given, "--to");
        let Err(Failure::Use(why)) = to("sqlite:new.db", line.target.clone().into()) else { panic!() };
        assert_eq!(why, "--to is a file, which is reached without TLS");
        assert!(to("postgres://u@db/d", line.target.into()).is_ok() && to("sqlite:new.db", Given::default()).is_ok());
    }
}
