//! The addresses that load may go to: this machine, and machines that the user claims to own.

use super::trust::Trust;
use super::{Url, Wrong};
use crate::Refusal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

/// The hosts besides this machine that may be measured, and the TLS configuration. Neither exists by default.
#[derive(Clone, Default)]
pub struct Reach {
    owned: Vec<(String, Vec<IpAddr>)>,
    /// An origin, and the addresses to connect to instead of those that its name resolves to.
    instead: Option<(Origin, Vec<SocketAddr>)>,
    tls: Option<Arc<ClientConfig>>,
    /// True if the target is `https`: secrets and passwords then go nowhere in plain text.
    only_tls: bool,
    /// True if the target is on another machine: what runs on this one is then another service.
    is_far: bool,
}

/// The origin of a URL (RFC 6454 §4), with the port even if it is not written.
type Origin = (bool, String, u16);

fn origin(url: &Url) -> Origin {
    (url.is_secure(), url.host().to_ascii_lowercase(), url.port())
}

impl Reach {
    /// Adds a host that the user claims to own. Its name is resolved here, once.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if the name has no address.
    pub fn own(&mut self, host: &str) -> Result<(), Refusal> {
        let found = (host, 0).to_socket_addrs();
        let found = found.map_err(|error| Refusal::Failure(format!("cannot find an address of {host}: {error}")))?;
        self.owned.push((host.to_ascii_lowercase(), found.map(|address| address.ip()).collect()));
        Ok(())
    }

    /// Connects to `place`, a host and a port, for the origin of `target`: one node of several that serve it.
    ///
    /// # Errors
    /// [`Refusal::Use`] if that is not a host and a port, or is neither on this machine nor owned.
    pub fn connect_to(&mut self, place: &str, target: &Url) -> Result<(), Refusal> {
        let wrong = |why: &str| Refusal::Use(format!("--connect-to {place}: {why}"));
        let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let url = Url::parse(&format!("http://{place}")).ok().filter(|url| has_port && url.target() == "/");
        let url = url.ok_or_else(|| wrong("not HOST:PORT"))?;
        let addresses = self.addresses(&url).map_err(|why| wrong(&why.to_string()))?;
        self.instead = Some((origin(target), addresses));
        Ok(())
    }

    /// Returns the addresses of that place, if there is one.
    pub fn instead(&self) -> Option<&[SocketAddr]> {
        self.instead.as_ref().map(|(_, addresses)| &addresses[..])
    }

    /// Remembers where `target` is, for what its metadata and its pages lead to. Comes after all that says how to reach
    /// it.
    pub fn lead_to(&mut self, target: &Url) {
        let is_here = |addresses: Vec<SocketAddr>| addresses.iter().any(|address| address.ip().is_loopback());
        // What an earlier target asked for says nothing about this one.
        (self.only_tls, self.is_far) = (target.is_secure(), false);
        self.is_far = !self.addresses(target).is_ok_and(is_here);
    }

    /// Enables TLS with servers whose certificate is from the machine's authorities, or from those in a PEM file, or is
    /// in that file.
    ///
    /// # Errors
    /// [`Refusal::Use`] if the file holds no certificate, [`Refusal::Failure`] if the machine has none.
    pub fn speak_tls(&mut self, authorities: Option<&Path>) -> Result<(), Refusal> {
        let mut roots = RootCertStore::empty();
        let named = match authorities {
            Some(file) => read(file, &mut roots)?,
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                Vec::new()
            }
        };
        if roots.is_empty() {
            return Err(Refusal::Failure(
                "this machine has no trusted certificate authorities; name one with --ca".to_owned(),
            ));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trust = Trust::of(roots, named, Arc::clone(&provider));
        let trust = trust.map_err(|error| Refusal::Failure(format!("cannot set up TLS: {error}")))?;
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let versions = versions.map_err(|error| Refusal::Failure(format!("cannot set up TLS: {error}")))?;
        let mut config = versions.dangerous().with_custom_certificate_verifier(Arc::new(trust)).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        self.tls = Some(Arc::new(config));
        Ok(())
    }

    /// Returns the addresses to connect to for `url`, in the order to try.
    ///
    /// # Errors
    /// [`Wrong::NotLoopback`] and [`Wrong::ThisMachine`] for a host that the user does not claim to own,
    /// [`Wrong::NoTls`], and [`Wrong::PlainText`].
    pub fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Wrong> {
        if url.is_secure() && self.tls.is_none() {
            return Err(Wrong::NoTls);
        }
        if !url.is_secure() && self.only_tls {
            return Err(Wrong::PlainText);
        }
        if let Some((_, addresses)) = self.instead.as_ref().filter(|(of, _)| *of == origin(url)) {
            return Ok(addresses.clone());
        }
        let here = url.addresses();
        if here.is_ok() && self.is_far && !self.owns_this_machine() {
            return Err(Wrong::ThisMachine);
        }
        here.or_else(|wrong| {
            let (_, known) = self.owned.iter().find(|(host, _)| host == url.host()).ok_or(wrong)?;
            Ok(known.iter().map(|ip| SocketAddr::new(*ip, url.port())).collect())
        })
    }

    /// Returns true if one of the owned hosts is this machine, whatever it is called.
    fn owns_this_machine(&self) -> bool {
        self.owned.iter().any(|(_, known)| known.iter().any(IpAddr::is_loopback))
    }

    pub(super) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }
}

fn read(file: &Path, roots: &mut RootCertStore) -> Result<Vec<CertificateDer<'static>>, Refusal> {
    let wrong = |why: String| Refusal::Use(format!("{}: {why}", file.display()));
    let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    let mut named = Vec::new();
    for certificate in found {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
        named.push(certificate);
    }
    if roots.is_empty() { Err(wrong("contains no certificate".to_owned())) } else { Ok(named) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(reach: &Reach, url: &str) -> Result<Vec<SocketAddr>, Wrong> {
        reach.addresses(&Url::parse(url).unwrap())
    }

    #[test]
    fn only_this_machine_and_what_is_owned_is_reached() {
        let mut reach = Reach::default();
        assert_eq!(addresses(&reach, "http://192.0.2.1/"), Err(Wrong::NotLoopback));
        reach.own("192.0.2.1").unwrap();
        assert_eq!(addresses(&reach, "http://192.0.2.1:81/").unwrap(), ["192.0.2.1:81".parse().unwrap()]);
        assert_eq!(addresses(&reach, "http://192.0.2.2/"), Err(Wrong::NotLoopback));
        assert_eq!(addresses(&reach, "http://[::1]/").unwrap(), ["[::1]:80".parse().unwrap()]);
    }

    #[test]
    fn one_node_of_several_is_reached_by_its_address() {
        // Red where the origin does not matter, or where this lets somebody else's machine be reached.
        let mut reach = Reach::default();
        let target = Url::parse("http://id.example.com/base").unwrap();
        assert_eq!(addresses(&reach, "http://id.example.com/"), Err(Wrong::NotLoopback));
        reach.connect_to("127.0.0.1:8081", &target).unwrap();
        for url in ["http://id.example.com/", "http://id.example.com:80/oauth2/token"] {
            assert_eq!(addresses(&reach, url).unwrap(), ["127.0.0.1:8081".parse().unwrap()], "{url}");
        }
        assert_eq!(addresses(&reach, "http://id.example.com:81/"), Err(Wrong::NotLoopback));
        for place in ["192.0.2.1:80", "127.0.0.1", "127.0.0.1:80/x", "localhost:0x50", ""] {
            assert!(matches!(reach.connect_to(place, &target), Err(Refusal::Use(_))), "{place}");
        }
        reach.own("192.0.2.1").unwrap();
        reach.connect_to("192.0.2.1:80", &target).unwrap();
    }

    /// Red without `is_far`: the password went to whatever else listens on the machine of the generator.
    #[test]
    fn this_machine_is_another_host_where_the_target_is_not_on_it() {
        let target = Url::parse("http://192.0.2.1/").unwrap();
        let led = |owned: &[&str]| {
            let mut reach = Reach::default();
            owned.iter().for_each(|host| reach.own(host).unwrap());
            reach.lead_to(&target);
            ["http://localhost:1/", "http://[::1]/", "http://192.0.2.1/a"].map(|url| addresses(&reach, url).err())
        };
        assert_eq!(led(&["192.0.2.1"]), [Some(Wrong::ThisMachine), Some(Wrong::ThisMachine), None]);
        assert_eq!(led(&["192.0.2.1", "localhost"]), [None; 3]);
        let mut reach = Reach::default();
        reach.connect_to("127.0.0.1:81", &target).unwrap();
        reach.lead_to(&target);
        let both = ["http://192.0.2.1/", "http://127.0.0.1:82/"].map(|url| addresses(&reach, url).err());
        assert_eq!(both, [None; 2], "a node on this machine");
        let mut near = Reach::default();
        near.lead_to(&Url::parse("http://localhost:1/").unwrap());
        assert_eq!(addresses(&near, "http://127.0.0.1:2/").err(), None);
    }

    /// Red without `only_tls`: the client's secret went to a token endpoint in plain text.
    #[test]
    fn nothing_goes_in_plain_text_where_the_target_is_https() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let file = std::env::temp_dir().join(format!("load-plain-{}.pem", std::process::id()));
        std::fs::write(&file, made.cert.pem()).unwrap();
        let mut reach = Reach::default();
        reach.speak_tls(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        let led = |reach: &Reach| ["http", "https"].map(|scheme| addresses(reach, &format!("{scheme}://[::1]/")).err());
        assert_eq!(led(&reach), [None; 2], "before there is a target");
        reach.lead_to(&Url::parse("https://localhost/").unwrap());
        assert_eq!(led(&reach), [Some(Wrong::PlainText), None]);
        reach.lead_to(&Url::parse("http://localhost/").unwrap());
        assert_eq!(led(&reach), [None; 2]);
    }

    #[test]
    fn tls_is_spoken_only_where_it_was_asked_for() {
        let mut reach = Reach::default();
        assert_eq!(addresses(&reach, "https://localhost/"), Err(Wrong::NoTls));
        let empty = reach.speak_tls(Some(Path::new("/dev/null"))).unwrap_err();
        assert_eq!(empty, Refusal::Use("/dev/null: contains no certificate".to_owned()));
        assert!(reach.speak_tls(Some(Path::new("/nowhere/at/all"))).unwrap_err().to_string().starts_with("/nowhere"));
    }
}
