//! The servers that this server connects to, as the configuration names them: the TLS files of each, under its options,
//! and the header fields that go with what is sent.

use crate::boot::BootError;
use crate::config::{Config, SecretFile};
use crate::private;
use app::reach::{OpenError, Tls};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The TLS files for one receiver.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// How the names of the options begin, without the dot.
    section: &'static str,
    authorities: &'a Option<PathBuf>,
    certificate: &'a Option<PathBuf>,
    key: &'a Option<SecretFile>,
}

/// Returns the files for every receiver that the configuration can name.
pub fn all(config: &Config) -> [Files<'_>; 4] {
    [to_store(config), to_syslog(config), to_http(config), to_collector(config)]
}

macro_rules! files {
    ($($(#[doc = $doc:literal])+ $name:ident = $section:literal $options:ident;)+) => {$(
        $(#[doc = $doc])+
        pub fn $name(config: &Config) -> Files<'_> {
            let options = &config.$options;
            let (authorities, certificate, key) = (&options.authorities, &options.certificate, &options.key);
            Files { section: $section, authorities, certificate, key }
        }
    )+};
}

files! {
    /// For the database server.
    to_store = "store" store;
    /// For the syslog server that gets the audit log.
    to_syslog = "audit.syslog" audit_syslog;
    /// For the HTTP server that gets the audit log.
    to_http = "audit.http" audit_http;
    /// For the trace collector.
    to_collector = "trace" trace;
}

impl Files<'_> {
    /// Returns what a connection is secured with.
    pub fn tls(&self) -> Tls {
        let identity = self.certificate.clone().zip(self.key.as_ref().map(|key| key.to_path_buf()));
        Tls { authorities: self.authorities.clone(), identity }
    }

    /// Reports an error under the option that names its file, or under `otherwise` if it is about no file.
    pub fn wrong(&self, error: &OpenError, otherwise: &str) -> BootError {
        let told = format!("{otherwise}: {error}");
        let (wrong, why) = match error {
            OpenError::File(wrong, why) => (wrong, why),
            OpenError::Mismatch { .. } => return BootError::Other(format!("{}.key: {error}", self.section)),
            OpenError::Unreachable(_) => return BootError::Away(told),
            OpenError::Settings(_) | OpenError::Refused(_) | OpenError::Unfit(_) => return BootError::Other(told),
        };
        // The option may hold the key itself instead of the file's path.
        if let Some(key) = self.key.as_ref().filter(|key| ***key == **wrong && !key.exists()) {
            return BootError::Other(key.wrong(&format!("{}.key", self.section), why));
        }
        let is = |file: &Option<PathBuf>| file.as_ref() == Some(wrong);
        let option = match self {
            files if is(files.authorities) => "authorities",
            files if is(files.certificate) => "certificate",
            files if files.key.as_ref().is_some_and(|key| **key == **wrong) => "key",
            _ => return BootError::Other(told),
        };
        BootError::Other(format!("{}.{option}: {error}", self.section))
    }

    /// Returns the path of the client key, with the name of its option.
    pub fn key(&self) -> Option<(String, &Path)> {
        self.key.as_ref().map(|key| (format!("{}.key", self.section), &**key))
    }
}

/// Reads header fields from a secret file that has one per line; `option` names the file.
///
/// # Errors
/// What is wrong with the file, without its content.
pub fn headers(option: &str, file: Option<&SecretFile>) -> Result<HeaderMap, BootError> {
    let mut headers = HeaderMap::new();
    let Some(file) = file else { return Ok(headers) };
    let failed = |why: &dyn Display| BootError::Other(file.wrong(option, why));
    let text = private::read_text(file).map_err(|why| failed(&why))?;
    let text = std::str::from_utf8(&text).map_err(|error| failed(&error))?;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let read = || {
            let (name, value) = line.split_once(':')?;
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
        };
        let (name, value) = read().ok_or_else(|| failed(&format!("line {} is not `Name: value`", number + 1)))?;
        headers.append(name, value);
    }
    Ok(headers)
}
