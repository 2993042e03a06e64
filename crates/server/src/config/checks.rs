//! What a value must be beyond its type, alone and together with others.

use super::options::Config;
use super::secret_file::SecretFile;
use super::store_url::StoreUrl;
use super::value::{Journal, Replication, Size, Statements, Value};
use crate::net::Cidr;
use crate::private::Key;
use app::audit::sink::{Http, Syslog};
use app::reach::Target;
use base64::Engine as _;
use rules::{Secret, Span};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// What a value must be beyond its type.
pub trait Check<T> {
    /// Fails with what is wrong with the value.
    fn check(&self, value: &T) -> Result<(), String>;

    /// Returns the bounds of the value, if there are any.
    fn bounds(&self) -> Option<String> {
        None
    }
}

impl<T, F: Fn(&T) -> Result<(), String>> Check<T> for F {
    fn check(&self, value: &T) -> Result<(), String> {
        self(value)
    }
}

/// Values from `low` on, and up to `high` if there is one.
pub struct Bounds<T> {
    low: T,
    high: Option<T>,
}

/// Accepts values from `low` to `high`.
pub fn between<T: PartialOrd + Value>(low: T, high: T) -> Bounds<T> {
    Bounds { low, high: Some(high) }
}

/// Accepts values of at least `low`.
pub fn at_least<T: PartialOrd + Value>(low: T) -> Bounds<T> {
    Bounds { low, high: None }
}

/// Accepts as much memory for hashing as can be set.
pub fn hashing_memory() -> Bounds<Size> {
    at_least(Size(8 << 20))
}

impl<T: PartialOrd + Value> Check<T> for Bounds<T> {
    fn check(&self, value: &T) -> Result<(), String> {
        if *value >= self.low && self.high.as_ref().is_none_or(|high| value <= high) {
            return Ok(());
        }
        let low = shown(&self.low);
        Err(match &self.high {
            Some(high) => format!("must be between {low} and {}", shown(high)),
            None => format!("must be at least {low}"),
        })
    }

    fn bounds(&self) -> Option<String> {
        let low = shown(&self.low);
        Some(self.high.as_ref().map_or_else(|| format!("{low} or more"), |high| format!("{low} to {}", shown(high))))
    }
}

/// The check of a value that may be unset.
pub struct IfSet<C>(C);

/// Applies a check to a value that may be unset.
pub fn if_set<C>(check: C) -> IfSet<C> {
    IfSet(check)
}

impl<T, C: Check<T>> Check<Option<T>> for IfSet<C> {
    fn check(&self, value: &Option<T>) -> Result<(), String> {
        value.as_ref().map_or(Ok(()), |value| self.0.check(value))
    }

    fn bounds(&self) -> Option<String> {
        self.0.bounds()
    }
}

fn shown<T: Value>(value: &T) -> String {
    value.show().unwrap_or_default().replace('"', "")
}

/// Refuses an empty list, and addresses that collide.
pub fn listens(addresses: &[SocketAddr]) -> Result<(), String> {
    if addresses.is_empty() {
        return Err("needs at least one address".to_owned());
    }
    no_twins(addresses)
}

/// Refuses an address that is named twice, and one beside another that includes it.
pub fn no_twins(addresses: &[SocketAddr]) -> Result<(), String> {
    for (at, one) in addresses.iter().enumerate() {
        let in_the_way = |other: &&SocketAddr| collide((**other, addresses), (*one, addresses));
        match addresses[..at].iter().find(in_the_way) {
            Some(same) if same == one => return Err(format!("names {one} twice")),
            Some(other) => return Err(format!("names {other} and {one}, which overlap: leave out one")),
            None => {}
        }
    }
    Ok(())
}

/// Refuses a name that people see unless it has 1 to 64 characters.
pub fn readable_name(name: &str) -> Result<(), String> {
    match name.trim().chars().count() {
        1..=64 => Ok(()),
        _ => Err("must have 1 to 64 characters".to_owned()),
    }
}

/// Refuses anything but base64 of exactly 32 bytes. The message never repeats the value.
pub fn master_key(key: &Secret) -> Result<(), String> {
    match decode_master_key(key) {
        Some(_) => Ok(()),
        None => Err("is not 32 bytes in base64".to_owned()),
    }
}

pub(super) fn decode_master_key(key: &Secret) -> Option<Key> {
    let text = key.reveal().trim();
    let bytes = Zeroizing::new(base64::engine::general_purpose::STANDARD.decode(text).ok()?);
    Some(Key::new(bytes.as_slice().try_into().ok()?))
}

/// Refuses trusted networks that include the whole world: any client could choose its own address.
pub fn not_everybody(networks: &[Cidr]) -> Result<(), String> {
    match networks.iter().find(|network| network.is_everything()) {
        Some(network) => Err(format!("{network} would trust everybody: list your proxies' own addresses")),
        None => Ok(()),
    }
}

/// Refuses exempt networks that include the whole world: nobody would be counted.
pub fn not_all_exempt(networks: &[Cidr]) -> Result<(), String> {
    match networks.iter().find(|network| network.is_everything()) {
        Some(network) => Err(format!("{network} would exempt everybody: list the networks of your own machines")),
        None => Ok(()),
    }
}

/// Refuses what is not the URL of a syslog server.
pub fn syslog_url(url: &str) -> Result<(), String> {
    Syslog::target(url).map(drop)
}

/// Refuses what is not the URL of an HTTP server.
pub fn http_url(url: &str) -> Result<(), String> {
    Http::target(url).map(drop)
}

/// The weakest allowed Argon2id parameters (OWASP's Password Storage Cheat Sheet): KiB and passes, with one lane.
const OWASP_ARGON2ID: [(u32, u32); 5] = [(47_104, 1), (19_456, 2), (12_288, 3), (9_216, 4), (7_168, 5)];

/// A condition between options.
pub struct Joint {
    /// The option to change.
    pub option: &'static str,
    /// The others that it depends on.
    pub beside: &'static [&'static str],
    /// Why.
    pub why: String,
    holds: bool,
}

/// Returns the conditions between options that do not hold.
pub fn together(config: &Config) -> Vec<Joint> {
    let pairs = [
        both_or_none(&config.tls.certificate, &config.tls.key, &["tls.certificate", "tls.key"]),
        both_or_none(&config.store.certificate, &config.store.key, &["store.certificate", "store.key"]),
        both_or_none(&config.trace.certificate, &config.trace.key, &["trace.certificate", "trace.key"]),
        both_or_none(
            &config.audit_syslog.certificate,
            &config.audit_syslog.key,
            &["audit.syslog.certificate", "audit.syslog.key"],
        ),
        both_or_none(
            &config.audit_http.certificate,
            &config.audit_http.key,
            &["audit.http.certificate", "audit.http.key"],
        ),
    ];
    let rules = of_passwords(config).into_iter().chain(of_replication(config)).chain(of_the_rest(config));
    let rules = rules.chain(of_addresses(config)).chain(of_receivers(config));
    rules.chain(pairs).filter(|rule| !rule.holds).collect()
}

fn rule(holds: bool, option: &'static str, beside: &'static [&'static str], why: &str) -> Joint {
    Joint { option, beside, why: why.to_owned(), holds }
}

fn of_passwords(config: &Config) -> [Joint; 5] {
    let (hash, argon2) = (&config.hash, &config.argon2);
    let strong = OWASP_ARGON2ID.iter().any(|(kib, passes)| argon2.memory_kib >= *kib && argon2.passes >= *passes);
    let list = OWASP_ARGON2ID.map(|(kib, passes)| format!("{kib} KiB with {passes}")).join(", ");
    let ceiling = hash.memory.map_or(u64::MAX, |size| size.0 / 1024);
    [
        rule(
            strong,
            "hash.argon2.memory_kib",
            &["hash.argon2.passes"],
            &format!("is below OWASP's list (memory with passes): {list}"),
        ),
        rule(
            argon2.memory_kib >= 8 * argon2.lanes,
            "hash.argon2.lanes",
            &["hash.argon2.memory_kib"],
            "need 8 KiB of memory each",
        ),
        rule(
            u64::from(argon2.memory_kib) <= ceiling,
            "hash.memory",
            &["hash.argon2.memory_kib"],
            "does not hold one hash of hash.argon2",
        ),
        rule(
            hash.binding_keys.is_empty() || !hash.peppers.is_empty(),
            "hash.binding_keys",
            &["hash.peppers"],
            "need a pepper beside them: make one with: portiere hash pepper NAME FILE",
        ),
        rule(
            config.workers.listen.is_empty() || !hash.binding_keys.is_empty() && !hash.peppers.is_empty(),
            "workers.listen",
            &["hash.binding_keys", "hash.peppers"],
            "needs a pepper and a binding key, so that hash workers learn nothing and prove nothing: make them with: portiere \
             hash pepper NAME FILE, and: portiere hash binding NAME FILE",
        ),
    ]
}

fn of_replication(config: &Config) -> [Joint; 2] {
    let store = &config.store;
    let strict = store.replication == Replication::Strict;
    [
        rule(
            !strict || !matches!(store.url, StoreUrl::Mysql(_)),
            "store.replication",
            &["store.url"],
            "is strict, which only PostgreSQL can be",
        ),
        rule(
            !strict || store.accept_loss.is_empty(),
            "store.replication",
            &["store.accept_loss"],
            "is strict, but store.accept_loss accepts losses",
        ),
    ]
}

/// Returns the options about a database server that are set although none is named: a node that is started without its
/// `store.url` would be a new server, on a database of its own. Numbers (`store.connections`, `store.timeout`) are
/// exempt: they do no harm beside a file, and may be meant for later. Asked by processes that open the database, but
/// not for a command that a running server carries out: the command may lack what the server has in its environment.
pub fn without_server(config: &Config) -> Vec<Joint> {
    of_a_server(config).into_iter().filter(|rule| !rule.holds).collect()
}

fn of_a_server(config: &Config) -> [Joint; 7] {
    let store = &config.store;
    let on_file = matches!(store.url, StoreUrl::Sqlite(_));
    let unsaid = |usual: bool, option| {
        rule(usual || !on_file, option, &["store.url"], "is about a database server, and store.url names none")
    };
    [
        unsaid(store.password_file.is_none(), "store.password_file"),
        unsaid(store.authorities.is_none(), "store.authorities"),
        unsaid(store.certificate.is_none(), "store.certificate"),
        unsaid(store.accept_loss.is_empty(), "store.accept_loss"),
        unsaid(store.replication == Replication::Observed, "store.replication"),
        unsaid(store.statements == Statements::Kept, "store.statements"),
        unsaid(store.journal == Journal::Auto, "store.journal"),
    ]
}

/// Each port has one use. Addresses that two options share are told of at the second option.
fn of_addresses(config: &Config) -> [Joint; 3] {
    let (people, workers, metrics) = (&config.server.listen, &config.workers.listen, &config.metrics.listen);
    let apart = |these: &[SocketAddr], those: &[SocketAddr]| {
        !these.iter().any(|one| those.iter().any(|other| collide((*one, these), (*other, those))))
    };
    [
        rule(apart(workers, people), "workers.listen", &["listen"], "has an address of listen"),
        rule(apart(metrics, people), "metrics.listen", &["listen"], "has an address of listen"),
        rule(apart(metrics, workers), "metrics.listen", &["workers.listen"], "has an address of workers.listen"),
    ]
}

fn of_the_rest(config: &Config) -> [Joint; 9] {
    [
        rule(
            config.store.password_file.is_none() || !config.store.url.has_password(),
            "store.password_file",
            &["store.url"],
            "is set, and store.url has a password, too: give only one of them",
        ),
        rule(
            config.refresh.idle <= config.refresh.absolute,
            "refresh.idle",
            &["refresh.absolute"],
            "is longer than refresh.absolute",
        ),
        rule(
            config.session.idle <= config.session.absolute,
            "session.idle",
            &["session.absolute"],
            "is longer than session.absolute",
        ),
        rule(
            config.audit.key_file.is_none() || config.audit.key.is_none(),
            "audit.key_file",
            &["audit.key"],
            "is set together with audit.key: give only one of them",
        ),
        rule(
            config.audit.ceiling.is_none_or(|ceiling| ceiling > config.audit.max_lines.unwrap_or(0)),
            "audit.ceiling",
            &["audit.max_lines"],
            "is not above audit.max_lines",
        ),
        rule(
            config.throttle.base_delay <= config.throttle.max_delay,
            "throttle.base_delay",
            &["throttle.max_delay"],
            "is longer than throttle.max_delay",
        ),
        rule(
            config.keys.master.is_none() || config.keys.master_key.is_none(),
            "keys.master",
            &["keys.master_key"],
            "is set together with keys.master_key: give only one of them",
        ),
        rule(
            config.metrics.secret.is_some() || config.metrics.listen.iter().all(|address| address.ip().is_loopback()),
            "metrics.secret",
            &["metrics.listen"],
            "is missing, but metrics.listen names an address that other machines can reach",
        ),
        rule(
            config.trace.headers.is_none() || config.trace.endpoint.as_ref().is_none_or(Target::keeps_secrets),
            "trace.endpoint",
            &["trace.headers"],
            "must be https, except on this machine: trace.headers would be sent in clear",
        ),
    ]
}

/// A certificate is shown over TLS, and nowhere else: an operator who gave one would believe that it is shown.
fn of_receivers(config: &Config) -> [Joint; 3] {
    let (syslog, http, trace) = (&config.audit_syslog, &config.audit_http, &config.trace);
    let sealed = |url: &Option<String>, scheme: &str| {
        url.as_ref().is_none_or(|url| Target::parse(url).is_ok_and(|target| target.scheme == scheme))
    };
    [
        rule(
            syslog.certificate.is_none() || sealed(&syslog.url, "tls"),
            "audit.syslog.url",
            &["audit.syslog.certificate"],
            "must begin with tls://: audit.syslog.certificate would not be used otherwise",
        ),
        rule(
            http.certificate.is_none() || sealed(&http.url, "https"),
            "audit.http.url",
            &["audit.http.certificate"],
            "must begin with https://: audit.http.certificate would not be used otherwise",
        ),
        rule(
            trace.certificate.is_none() || trace.endpoint.as_ref().is_none_or(|endpoint| endpoint.scheme == "https"),
            "trace.endpoint",
            &["trace.certificate"],
            "must begin with https://: trace.certificate would not be used otherwise",
        ),
    ]
}

/// Returns whether two addresses mean the same port of the same address, each among those that are bound with it. Port
/// 0 is another port each time, and a link-local address is another one on each interface.
fn collide((one, these): (SocketAddr, &[SocketAddr]), (other, those): (SocketAddr, &[SocketAddr])) -> bool {
    let scope = |address| if let SocketAddr::V6(six) = address { six.scope_id() } else { 0 };
    let elsewhere = one.ip() == other.ip() && scope(one) != scope(other);
    let met = covers(one, these, other.ip()) || covers(other, those, one.ip());
    one.port() == other.port() && one.port() != 0 && met && !elsewhere
}

/// Returns whether a socket on `one` has `address`, too. As sockets are bound (net/listen.rs), `[::]` stands for both
/// families, unless an IPv4 address of the same port is `beside` it.
fn covers(one: SocketAddr, beside: &[SocketAddr], address: IpAddr) -> bool {
    let (ip, address) = (one.ip().to_canonical(), address.to_canonical());
    let both = ip.is_ipv6() && !beside.iter().any(|near| near.is_ipv4() && near.port() == one.port());
    ip == address || ip.is_unspecified() && (both || ip.is_ipv4() == address.is_ipv4())
}

/// Warns if an application that renews its tokens when they have expired finds that the session is over: it is noted as
/// used only then, and not more often than every so often.
pub fn short_sessions(config: &Config) -> Option<String> {
    let (idle, tokens) = (config.session.idle, config.token.access_ttl);
    let noted = config.session.touch_every.min(Span(idle.0 / 2));
    (idle <= tokens + noted).then(|| {
        "session.idle is not longer than token.access_ttl and session.touch_every together: applications that renew \
         their tokens when these have expired may find that the session is over"
            .to_owned()
    })
}

fn both_or_none(certificate: &Option<PathBuf>, key: &Option<SecretFile>, names: &'static [&'static str; 2]) -> Joint {
    let option = if certificate.is_some() { names[1] } else { names[0] };
    let holds = certificate.is_some() == key.is_some();
    Joint { option, beside: names, why: "is missing: TLS needs a certificate and its key".to_owned(), holds }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Sources};

    #[test]
    fn sessions_that_end_before_the_next_refresh_warn() {
        for (idle, warns) in [("16m", true), ("21m", false), ("20m", true)] {
            let env = vec![("PORTIERE_SESSION_IDLE".to_owned(), idle.to_owned())];
            let told = Config::load(Sources { env, ..Sources::default() }).unwrap().warnings.concat();
            assert_eq!(told.contains("session.idle"), warns, "{idle}: {told}");
        }
    }

    #[test]
    fn a_certificate_is_for_whoever_is_reached_over_tls() {
        // Red without of_receivers: the certificate would never be shown, and nothing would say so.
        for (section, url, plain, sealed) in [
            ("audit.syslog", "audit.syslog.url", "tcp://logs.test", "TLS://logs.test"),
            ("audit.http", "audit.http.url", "http://localhost/in", "https://siem.test/in"),
            ("trace", "trace.endpoint", "http://localhost:4318", "https://otel.test"),
        ] {
            let with = |place: &str| {
                let name = |option: &str| format!("PORTIERE_{}", option.replace('.', "_").to_uppercase());
                let files = ["certificate", "key"].map(|file| (name(&format!("{section}.{file}")), file.to_owned()));
                let env = [vec![(name(url), place.to_owned())], files.to_vec()].concat();
                Config::load(Sources { env, ..Sources::default() })
            };
            let wrong = with(plain).unwrap_err();
            assert_eq!(wrong.iter().map(|problem| problem.option.as_deref()).collect::<Vec<_>>(), [Some(url)]);
            assert!(with(sealed).is_ok(), "{section}");
        }
    }
}
