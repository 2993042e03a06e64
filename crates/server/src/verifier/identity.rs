//! Identifies the other side by its raw public key, which is pinned.

use super::PROTOCOL;
use crate::private::Key;
use rules::secret::{Handle, base64url, from_base64url};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use zeroize::Zeroizing;

/// How an Ed25519 private key in PKCS #8 begins (RFC 8410 §7); its 32 bytes follow.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// A key pair of this side.
#[derive(Debug)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    /// The SHA-256 of the public key, by which the other side knows this one.
    pub pin: Handle,
}

impl Identity {
    /// Returns the key pair that follows from 32 random bytes.
    ///
    /// # Errors
    /// A sentence, if the cryptography library makes no key of them.
    pub fn of(seed: &Key) -> Result<Self, String> {
        let der = Zeroizing::new([&PKCS8[..], &**seed].concat());
        let failed = |why: String| format!("a key for hash workers cannot be made: {why}");
        let key = aws_lc_rs::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der.as_slice()));
        let key = key.map_err(|error| failed(error.to_string()))?;
        let public = key.public_key().ok_or_else(|| failed("it has no public key".into()))?;
        let public = CertificateDer::from(public.as_ref().to_vec());
        let pin = pin(&public);
        Ok(Identity { key: Arc::new(CertifiedKey::new(vec![public], key)), pin })
    }

    /// Returns the TLS settings of the server: any key may knock, and it is looked at afterwards.
    ///
    /// # Errors
    /// A sentence.
    pub fn accepting(&self) -> Result<Arc<ServerConfig>, String> {
        let (provider, algorithms) = provider();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(Arc::new(AnyKey { algorithms }))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&self.key))));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// Returns the TLS settings of a worker: it speaks only to the server with this key.
    ///
    /// # Errors
    /// A sentence.
    pub fn dialling(&self, server: Handle) -> Result<Arc<ClientConfig>, String> {
        let (provider, algorithms) = provider();
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned { pin: server, algorithms }))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&self.key))));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }
}

/// Returns the pin by which a public key is known.
pub fn pin(public: &CertificateDer<'_>) -> Handle {
    Handle(Sha256::digest(public.as_ref()).into())
}

/// Returns a pin as text.
pub fn shown(pin: Handle) -> String {
    base64url(&pin.0)
}

/// Returns the pin of a text.
pub fn read(text: &str) -> Option<Handle> {
    Handle::from_slice(&from_base64url(text)?)
}

fn provider() -> (Arc<CryptoProvider>, WebPkiSupportedAlgorithms) {
    let provider = aws_lc_rs::default_provider();
    let algorithms = provider.signature_verification_algorithms;
    (Arc::new(provider), algorithms)
}

/// Accepts any client that holds the key that it shows.
#[derive(Debug)]
struct AnyKey {
    algorithms: WebPkiSupportedAlgorithms,
}

/// Accepts only the server with the pinned key.
#[derive(Debug)]
struct Pinned {
    pin: Handle,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Refuses TLS 1.2.
fn never() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not spoken here".into()))
}

fn holds(
    algorithms: &WebPkiSupportedAlgorithms,
    (message, public): (&[u8], &CertificateDer<'_>),
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let public = SubjectPublicKeyInfoDer::from(public.as_ref());
    verify_tls13_signature_with_raw_key(message, &public, signed, algorithms)
}

impl ClientCertVerifier for AnyKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        never()
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        public: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        holds(&self.algorithms, (message, public), signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        public: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match pin(public) == self.pin {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        never()
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        public: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        holds(&self.algorithms, (message, public), signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConnection, ServerConnection};

    fn identity(byte: u8) -> Identity {
        Identity::of(&Key::new([byte; 32])).unwrap()
    }

    /// Lets two sides speak until both are done, or one refuses.
    fn shake(mut client: ClientConnection, mut server: ServerConnection) -> Result<Handle, String> {
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().map_err(|error| error.to_string())?;
            let mut wire = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
        Ok(pin(&server.peer_certificates().unwrap()[0]))
    }

    fn dial(client: &Identity, to: Handle, server: &Identity) -> Result<Handle, String> {
        let name = ServerName::try_from("worker").unwrap();
        let client = ClientConnection::new(client.dialling(to).unwrap(), name).unwrap();
        shake(client, ServerConnection::new(server.accepting().unwrap()).unwrap())
    }

    #[test]
    fn each_side_knows_the_other_by_its_key_and_no_other_will_do() {
        let (server, other, worker) = (identity(1), identity(2), identity(3));
        assert_eq!(dial(&worker, server.pin, &server).unwrap(), worker.pin);
        assert!(dial(&worker, server.pin, &other).is_err(), "an impostor");
        assert_eq!(identity(1).pin, server.pin, "the same bytes make the same key");
        assert_eq!(read(&shown(server.pin)), Some(server.pin));
    }
}
