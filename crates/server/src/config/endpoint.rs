//! Where traces are sent to: an http or https URL without credentials.

use super::value::{Raw, Value};
use app::reach::Target;

impl Value for Target {
    fn takes() -> String {
        "a URL such as \"http://127.0.0.1:4318/v1/traces\"".to_owned()
    }

    fn parse(raw: &Raw) -> Result<Self, String> {
        let (Raw::Word(text) | Raw::Text(text)) = raw else { return Err(format!("expected {}", Self::takes())) };
        let mut target = Target::parse(text)?;
        // As for OTEL_EXPORTER_OTLP_ENDPOINT: a collector answers nothing at its root.
        if target.path == "/" {
            "/v1/traces".clone_into(&mut target.path);
        }
        match target.scheme.as_str() {
            "http" | "https" => Ok(target),
            _ => Err(format!("{text:?} is not {}", Self::takes())),
        }
    }

    fn show(&self) -> Option<String> {
        Some(toml::Value::String(self.to_string()).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_http_are_taken() {
        let read = |text: &str| <Target as Value>::parse(&Raw::Text(text.to_owned()));
        let sealed = read("https://otel.example.test/v1/traces?tenant=a").unwrap();
        assert_eq!(sealed.show().unwrap(), "\"https://otel.example.test/v1/traces?tenant=a\"");
        assert_eq!(read("http://[::1]:4318/v1/traces").unwrap().host, "::1");
        for root in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
            assert_eq!(read(root).unwrap().show().unwrap(), "\"http://127.0.0.1:4318/v1/traces\"");
        }
        for bad in ["127.0.0.1:4318", "grpc://a/b", "/v1/traces", "", "http://a:b@c/", "http://a/b#c"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
