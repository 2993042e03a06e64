//! Where something is sent to: an http or https URL without credentials.

use super::value::{Raw, Value};
use hyper::Uri;

/// Such a URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether TLS is spoken there.
    pub tls: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Host and port as they are named in a request.
    pub authority: String,
    /// Path and query.
    pub target: String,
}

impl Value for Endpoint {
    fn takes() -> String {
        "a URL such as \"http://127.0.0.1:4318/v1/traces\"".to_owned()
    }

    fn parse(raw: &Raw) -> Result<Self, String> {
        let (Raw::Word(text) | Raw::Text(text)) = raw else { return Err(format!("expected {}", Self::takes())) };
        let bad = || format!("{text:?} is not {}", Self::takes());
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad()),
        };
        let authority = uri.authority().ok_or_else(bad)?;
        if authority.as_str().contains('@') {
            return Err("must not hold credentials: they belong into a file".to_owned());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Endpoint { tls, host, port, authority: authority.as_str().to_owned(), target })
    }

    fn show(&self) -> Option<String> {
        let scheme = if self.tls { "https" } else { "http" };
        Some(toml::Value::String(format!("{scheme}://{}{}", self.authority, self.target)).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let read = |text: &str| Endpoint::parse(&Raw::Text(text.to_owned()));
        let plain = read("http://[::1]:4318/v1/traces").unwrap();
        assert_eq!((plain.tls, plain.host.as_str(), plain.port), (false, "::1", 4318));
        let sealed = read("https://otel.example.test/v1/traces?tenant=a").unwrap();
        assert_eq!((sealed.tls, sealed.port, sealed.target.as_str()), (true, 443, "/v1/traces?tenant=a"));
        assert_eq!(sealed.show().unwrap(), "\"https://otel.example.test/v1/traces?tenant=a\"");
        for bad in ["127.0.0.1:4318", "grpc://a/b", "/v1/traces", "", "http://a:b@c/"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
