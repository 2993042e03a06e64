//! The table of options: one entry each, from which everything else is made.

use super::checks::{
    Check, at_least, between, hashing_memory, http_url, if_set, listens, master_key, no_twins, not_all_exempt,
    not_everybody, readable_name, syslog_url,
};
use super::declare::{Declared, Section, When};
use super::public_url::PublicUrl;
use super::reader::{Reader, Source};
use super::secret_file::SecretFile;
use super::store_url::StoreUrl;
use super::value::{
    Journal, KeyFile, LogFormat, Loss, ProxyHeader, Replication, Share, Size, Statements, Synchronous, TryIt, Value,
};
use crate::net::Cidr;
use app::reach::Target;
use rules::{Secret, Span};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

macro_rules! check {
    ($kind:ty) => {
        |_: &$kind| Ok(())
    };
    ($kind:ty, $check:expr) => {
        $check
    };
}

macro_rules! options {
    ($(
        $(#[doc = $about:literal])+
        $prefix:literal $section:ident: $Section:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $kind:ty = $default:expr $(=> $computed:literal)?, $when:ident $(, $check:expr)?;
            )+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug)]
            pub struct $Section {
                $($(#[doc = $doc])+ pub $field: $kind,)+
            }
        )+

        /// Every setting, typed and checked.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[doc = $about])+ pub $section: $Section,)+
            /// What is odd but no reason to refuse: unknown `PORTIERE_` variables, a server that only this machine can
            /// name.
            pub warnings: Vec<String>,
            /// The variables among them, without those that Kubernetes makes.
            pub unknown: Vec<super::Unknown>,
            pub(super) sources: BTreeMap<&'static str, Source>,
        }

        /// The table itself.
        pub const SECTIONS: &[Section] = &[$(Section {
            prefix: $prefix,
            about: concat!($($about, "\n"),+),
            options: &[$(Declared {
                name: concat!($prefix, stringify!($field)),
                doc: concat!($($doc, "\n"),+),
                takes: <$kind as Value>::takes,
                bounds: || Check::<$kind>::bounds(&check!($kind $(, $check)?)),
                default: || {
                    let default: $kind = $default;
                    default.show()
                },
                computed: concat!($($computed)?),
                when: When::$when,
            }),+],
        }),+];

        pub(super) fn build(reader: &mut Reader) -> Config {
            Config {
                $($section: $Section {
                    $($field: reader.take::<$kind>(
                        concat!($prefix, stringify!($field)),
                        || $default,
                        check!($kind $(, $check)?),
                    ),)+
                },)+
                warnings: Vec::new(),
                unknown: Vec::new(),
                sources: BTreeMap::new(),
            }
        }

        impl Config {
            /// Each option's name and its value as TOML, in the table's order.
            pub(super) fn values(&self) -> Vec<(&'static str, Option<String>)> {
                vec![$($((concat!($prefix, stringify!($field)), self.$section.$field.show())),+),+]
            }
        }
    };
}

options! {
    /// Where the server listens, and its public name.
    "" server: Server {
        /// Addresses to listen on. Port 0 takes any free port. On a machine without IPv6, the default's second address
        /// is left out.
        listen: Vec<SocketAddr> = default_listen(), Start, |all: &Vec<SocketAddr>| listens(all);
        /// The URL at which users and applications reach the server. It is the issuer, byte for byte. It must be https,
        /// except on localhost, and must have no query, no fragment and no trailing slash.
        public_url: Option<PublicUrl> = None => "http://localhost (https with `tls.certificate`) with the port of `listen`", Start;
        /// The data folder. The server creates it with mode 0700.
        data: PathBuf = "./data".into(), Start;
        /// Whether the home page offers "Try it". `auto`: only if the public URL is on localhost.
        try_it: TryIt = TryIt::Auto, Start;
    }

    /// How the pages present the service.
    "brand." brand: Brand {
        /// The name that every page shows.
        name: String = "Portiere".into(), Start, |name: &String| readable_name(name);
    }

    /// Where the server keeps its data.
    "store." store: Store {
        /// The database: `sqlite:FILE`, where a relative path starts at the data folder, or a database server that
        /// several nodes can share: `postgres://USER:PASSWORD@HOST/DATABASE` or `mysql://USER:PASSWORD@HOST/DATABASE`
        /// (also for MariaDB). Set a URL that contains a password through the environment, or put the password alone in
        /// a file (`store.password_file`).
        url: StoreUrl = StoreUrl::Sqlite("portiere.db".into()), Start;
        /// Database server: file with the password, if `store.url` has none. The text is used as it is, without the
        /// line ending; nothing in it is percent-encoded. Each new connection uses the current content of the file.
        password_file: Option<SecretFile> = None => "the one in `store.url`, if any", Live;
        /// SQLite: number of connections for reads.
        readers: Option<usize> = None => "one a core, at least 2 and at most 4", Start, if_set(between(1, 64));
        /// SQLite: when a write is acknowledged. `full`: once it is on the disk. With `normal`, a power cut may lose
        /// the last writes.
        synchronous: Synchronous = Synchronous::Full, Start;
        /// Database server: number of connections that the node keeps to it.
        connections: usize = 8, Start, between(2, 512);
        /// Database server: the longest time that a read or a write may take. An attempt to connect to one server is
        /// given up earlier, to leave time for the next server: with PostgreSQL after 3 s (`connect_timeout` in the
        /// URL), or after this timeout if it is shorter; with MySQL and MariaDB after a quarter of this timeout.
        timeout: Duration = Duration::from_secs(10), Start,
            between(Duration::from_secs(1), Duration::from_secs(300));
        /// PostgreSQL: `kept` prepares each statement once per connection. `unnamed` sends each statement anew every
        /// time, for a pooler that gives each transaction another connection (PgBouncer in transaction mode). MySQL and
        /// MariaDB: always kept.
        statements: Statements = Statements::Kept, Start;
        /// Database server: PEM file with the certificate authorities that may vouch for it.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// Database server that requires client certificates: PEM file with the node's certificate and its chain.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file with the private key of that certificate.
        key: Option<SecretFile> = None => "none", Live;
        /// A database server that is configured to lose acknowledged writes is refused, unless this list names the
        /// loss: `commits` (the last moments, when the database process dies) or `database` (everything, at a power
        /// loss).
        accept_loss: Vec<Loss> = Vec::new(), Start;
        /// Database server: what you know about its replication, which no server can report itself. `strict`:
        /// PostgreSQL never acknowledges a write that no standby has confirmed, even if its standbys are gone
        /// (Patroni's `synchronous_mode_strict`); while a standby confirms writes, the node keeps no journal.
        /// `observed`: the server may continue without a standby. `bounded`: a server that did not get the last writes
        /// may take over, even a server that the URL does not name.
        replication: Replication = Replication::Observed, Start;
        /// Database server: what each node keeps so that a failover undoes nothing that was acknowledged. `auto`: a
        /// journal in the data folder, except while `store.replication` is `strict` and a standby confirms writes.
        /// `off`: no journal, so that whatever a failover undoes stays undone.
        journal: Journal = Journal::Auto, Start;
    }

    /// How much of the machine password hashing may use.
    "hash." hash: Hash {
        /// Number of hashing threads. Only cores that the process may use count: a container's CPU limit (`cpu.max`)
        /// applies, rounded down to whole cores, but at least 1. If there are as many threads as cores, each stays on
        /// one of them (Linux).
        threads: Option<usize> = None => "one a core", Start, if_set(between(1, 1024));
        /// The longest time that a sign-in may wait for its turn. A sign-in that would wait longer is refused at once
        /// with 503 and Retry-After.
        max_wait: Duration = Duration::from_secs(3), Start,
            between(Duration::from_millis(100), Duration::from_secs(60));
        /// The most memory in which hashes are computed.
        memory: Option<Size> = None => "a quarter of the machine's memory", Start, if_set(hashing_memory());
        /// Whether the server replaces a hash that was imported, or made under another policy, when its owner signs in.
        /// Turn this off only while another system reads the same hashes.
        upgrade: bool = true, Start;
        /// Peppers: secrets of 32 bytes, made by `portiere hash pepper`, without which password hashes from the
        /// database cannot be checked. New hashes use the first pepper. Keep the others until no hash needs them;
        /// hashes move to the first pepper as users sign in. If a pepper is lost, every password that needs it is lost.
        /// An example: `p1:/etc/portiere/pepper-p1`.
        peppers: Vec<KeyFile> = Vec::new(), Start;
        /// Binding keys: secrets of 32 bytes, made by `portiere hash binding`, that make a hash worthless for any other
        /// account. Hash workers require a binding key and a pepper. New hashes use the first binding key. Keep the
        /// others until no hash needs them. If a binding key is lost, every password that needs it is lost. An example:
        /// `b1:/etc/portiere/binding-b1`.
        binding_keys: Vec<KeyFile> = Vec::new(), Start;
        /// Secrets of other systems with which imported hashes were made: Firebase's signer key in base64, Devise's
        /// pepper. Each file holds the text as that system shows it. Keep each secret until no hash needs it; hashes
        /// stop needing it as users sign in. An example: `fb:/etc/portiere/firebase-signer-key`.
        import_keys: Vec<KeyFile> = Vec::new(), Start;
    }

    /// Parameters of new password hashes (Argon2id, RFC 9106). They cannot go below OWASP's list.
    "hash.argon2." argon2: Argon2 {
        /// Memory for one hash, in KiB.
        memory_kib: u32 = 19_456, Start, between(7_168, 1_048_576);
        /// Number of passes over that memory.
        passes: u32 = 2, Start, between(1, 64);
        /// Number of lanes of one hash.
        lanes: u32 = 1, Start, between(1, 64);
    }

    /// Machines that hash passwords for this server; see docs/guide/workers.md.
    "workers." workers: Workers {
        /// Addresses on which the server accepts hash workers, over TLS with keys of their own. Empty: there are no
        /// workers.
        listen: Vec<SocketAddr> = Vec::new(), Start;
    }

    /// Requirements for passwords.
    "password." password: Password {
        /// The minimum number of characters. NIST SP 800-63B asks for 15 if the password is the only factor.
        min_length: usize = 8, Start, between(8, 64);
    }

    /// Accounts that people create themselves.
    "signup." signup: Signup {
        /// Whether anyone may create an account.
        enabled: bool = false, Start;
    }

    /// Lifetimes of tokens.
    "token." token: Token {
        /// Lifetime of an access token. A signed access token that was revoked is still accepted elsewhere until it
        /// expires.
        access_ttl: Span = Span::minutes(15), Start, between(Span::seconds(10), Span::hours(24));
        /// Lifetime of an ID token.
        id_ttl: Span = Span::minutes(15), Start, between(Span::seconds(10), Span::hours(24));
    }

    /// Authorization codes.
    "code." code: Code {
        /// Lifetime of an authorization code (RFC 6749 §4.1.2 recommends at most 10 minutes).
        ttl: Span = Span::seconds(60), Start, between(Span::seconds(1), Span::minutes(10));
    }

    /// Refresh tokens.
    "refresh." refresh: Refresh {
        /// A refresh token expires if it is not used for this long.
        idle: Span = Span::days(30), Start, between(Span::minutes(1), Span::days(3650));
        /// The longest lifetime of a family of refresh tokens.
        absolute: Span = Span::days(90), Start, between(Span::minutes(1), Span::days(3650));
        /// How long the previous refresh token, sent again by its client, still yields the same successor, so that a
        /// lost response signs nobody out. `0s`: any reuse revokes the whole family.
        grace: Span = Span::seconds(10), Start, between(Span::ZERO, Span::minutes(5));
    }

    /// The device flow (RFC 8628).
    "device." device: Device {
        /// Lifetime of a device code.
        ttl: Span = Span::minutes(10), Start, between(Span::minutes(1), Span::minutes(30));
    }

    /// Sign-in sessions.
    "session." session: Session {
        /// A session expires if it is not used for this long.
        idle: Span = Span::hours(24), Start, between(Span::minutes(1), Span::days(3650));
        /// The longest lifetime of a session.
        absolute: Span = Span::days(30), Start, between(Span::minutes(1), Span::days(3650));
        /// How often the server records the last use of a session: at most once in this time, but often enough that a
        /// session in use never counts as idle.
        touch_every: Span = Span::minutes(5), Start, between(Span::ZERO, Span::hours(24));
    }

    /// Proof Key for Code Exchange (RFC 7636).
    "pkce." pkce: Pkce {
        /// Lets clients that have a secret or a key omit PKCE. Public clients must always use it.
        optional_for_confidential: bool = false, Start;
    }

    /// Signing keys and the key that encrypts them.
    "keys." keys: Keys {
        /// Age at which the next signing key takes over.
        rotate_after: Span = Span::days(90), Start, between(Span::days(1), Span::days(3650));
        /// File with the master key. The server creates it with mode 0600 at the first start. Keep a copy apart from
        /// the backups.
        master: Option<SecretFile> = None => "`master.key` in the data folder", Start;
        /// The master key itself, 32 bytes in base64, in place of a file. Set it through the environment.
        master_key: Option<Secret> = None => "not set", Start, if_set(master_key);
    }

    /// Slows down guessing. Only failures count. Failures of strangers do not keep a user out of a browser or an
    /// application in which the user has signed in before (of several users, the last four who signed in there).
    "throttle." throttle: Throttle {
        /// Starting with this failure of an account, each failure costs a wait.
        free_failures: u32 = 5, Start, between(1, 1000);
        /// The wait after that failure. It doubles with each further failure.
        base_delay: Span = Span::seconds(1), Start, between(Span(100), Span::minutes(10));
        /// The longest wait. From 100 failures in a row on, it is a day at least.
        max_delay: Span = Span::minutes(15), Start, between(Span::seconds(1), Span::hours(24));
        /// Number of failures of an address (a /64 for IPv6) that cost no wait.
        address_free_failures: u32 = 50, Start, between(1, 1_000_000);
        /// How many times as many failures as one address the network around it may have (a /24, or a /56 for IPv6; a
        /// /48 may have four times as many again), so that guesses spread over its addresses are slowed down too. 0:
        /// networks are not counted.
        network_factor: u32 = 10, Start, between(0, 1000);
    }

    /// How much of the server connections and requests may use.
    "limits." limits: Limits {
        /// Time within which the TLS handshake must finish, and after it the headers of a request must arrive.
        header_timeout: Duration = Duration::from_secs(10), Start,
            between(Duration::from_millis(100), Duration::from_secs(300));
        /// Time within which the body of a request must arrive.
        body_timeout: Duration = Duration::from_secs(15), Start,
            between(Duration::from_millis(100), Duration::from_secs(600));
        /// Time after which the server closes a connection without a request.
        idle_timeout: Duration = Duration::from_secs(60), Start,
            between(Duration::from_secs(1), Duration::from_secs(3600));
        /// How long a server that was told to stop still answers every request, while `/readyz` is 503 and each answer
        /// closes its connection, so that a proxy loses no request.
        stop_delay: Option<Duration> = None => "3s where the database can serve several nodes, 0s on SQLite", Start,
            if_set(between(Duration::ZERO, Duration::from_secs(600)));
        /// Time that requests in flight get to finish when the server stops.
        drain_timeout: Duration = Duration::from_secs(25), Start,
            between(Duration::from_millis(100), Duration::from_secs(600));
        /// The largest body of a request.
        body_size: Size = Size(64 << 10), Start, between(Size(16 << 10), Size(16 << 20));
        /// The most concurrent connections from one address (a /64 for IPv6). With HTTP/2, each further concurrent
        /// request counts as one more. Loopback and listed proxies are exempt.
        connections_per_address: usize = 1024, Start, at_least(1);
        /// Further networks of trusted machines. Their connections, failures and wrong passwords are not counted per
        /// address (failures of an account still count).
        exempt_addresses: Vec<Cidr> = Vec::new(), Start, |all: &Vec<Cidr>| not_all_exempt(all);
        /// The most concurrent connections in total, counted in the same way.
        connections: usize = 20_000, Start, at_least(1);
        /// Requests of applications (tokens, introspection, userinfo, keys) that the server works on at a time. Further
        /// requests wait.
        tokens: usize = 512, Start, between(1, 1_000_000);
        /// Pages, and forms without a password, that the server works on at a time.
        pages: usize = 256, Start, between(1, 1_000_000);
        /// Forms with a password that the server works on at a time. `hash.max_wait` limits how long they wait for
        /// their hash.
        passwords: usize = 4096, Start, between(1, 1_000_000);
        /// The longest time that a request waits for one of these places. A request that would wait longer is refused
        /// at once and told when to retry.
        max_wait: Duration = Duration::from_secs(1), Start,
            between(Duration::from_millis(10), Duration::from_secs(60));
        /// Failed requests per second from one address (a /64 for IPv6), in the long run. Beyond that, the address is
        /// told to slow down. Successful requests do not count, except device authorization requests and revocations
        /// that change nothing, both in the name of a public client. 0: no limit. Loopback is exempt.
        failures_per_address: u32 = 10, Start, between(0, 1_000_000);
        /// Failed requests that an address may make at once.
        failures_burst: u32 = 1000, Start, between(1, 1_000_000);
        /// Requests per second of one client that authenticates; twice as many at once. 0: no limit.
        requests_per_client: u32 = 0, Start, between(0, 1_000_000);
        /// Requests per second of all clients and users together, separately for each kind of work (tokens, pages,
        /// passwords); twice as many at once. Requests that are refused later, such as those with a wrong secret, count
        /// as well. 0: no limit.
        requests_per_realm: u32 = 0, Start, between(0, 1_000_000);
    }

    /// Reverse proxies in front of the server.
    "proxy." proxy: Proxy {
        /// Networks of the proxies whose forwarded headers the server trusts. It never trusts forwarded headers from
        /// elsewhere.
        trusted: Vec<Cidr> = Vec::new(), Start, |all: &Vec<Cidr>| not_everybody(all);
        /// The header in which these proxies name the client. The server ignores the other header, since a proxy passes
        /// it on unchanged.
        header: ProxyHeader = ProxyHeader::XForwardedFor, Start;
    }

    /// TLS, if no proxy terminates it.
    "tls." tls: Tls {
        /// PEM file with the certificate and its chain.
        certificate: Option<PathBuf> = None => "no TLS", Live;
        /// PEM file with the private key of the certificate.
        key: Option<SecretFile> = None => "no TLS", Live;
    }

    /// The log, on standard error.
    "log." log: Log {
        /// `text` for people, `json` for machines.
        format: LogFormat = LogFormat::Text, Start;
        /// The least severe level that is logged.
        level: LevelFilter = LevelFilter::INFO, Start;
        /// A request that takes longer is logged, with where its time went. `0s`: no request is logged for its time.
        slow: Duration = Duration::from_secs(1), Start;
    }

    /// Metrics for Prometheus.
    "metrics." metrics: Metrics {
        /// Addresses that serve `/metrics`, and nothing else, such as 127.0.0.1:9464, over HTTP without TLS. Empty: no
        /// address does.
        listen: Vec<SocketAddr> = Vec::new(), Start, |all: &Vec<SocketAddr>| no_twins(all);
        /// File with the secret that a scraper must send (`Authorization: Bearer …`), at least 16 characters, with mode
        /// 0600. Required if an address is not on this machine's loopback.
        secret: Option<SecretFile> = None => "none", Live;
    }

    /// Traces of requests (OpenTelemetry), for a collector.
    "trace." trace: Trace {
        /// URL to which the server sends traces: OTLP over HTTP, in protobuf. A URL without a path gets `/v1/traces`.
        endpoint: Option<Target> = None => "nowhere: no request is traced", Start;
        /// Share of the requests that is traced. If a proxy in `proxy.trusted` says in `traceparent` whether a request
        /// is traced, that decision holds.
        sample: Share = Share(0.1), Start, between(Share(0.0), Share(1.0));
        /// File with header fields to send with the traces, one per line (`Authorization: Bearer …`), with mode 0600.
        /// The endpoint must then be https, except on this machine.
        headers: Option<SecretFile> = None => "none", Start;
        /// PEM file with the certificate authorities that may vouch for an https endpoint.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// PEM file with the client certificate and its chain, if the receiver requires client certificates.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file with the private key of that certificate.
        key: Option<SecretFile> = None => "none", Live;
    }

    /// When `/readyz` reports that the server is not ready although nothing is broken.
    "ready." ready: Ready {
        /// If a queue (for passwords, for the database, or for admission) stays nearly full for this long, the server
        /// is not ready until the queue has shrunk to half, so that a load balancer sends users to another node. `0s`:
        /// never, for a single server.
        strained_after: Duration = Duration::from_secs(5), Start,
            between(Duration::ZERO, Duration::from_secs(600));
    }

    /// The audit log: the record of who did what.
    "audit." audit: Audit {
        /// How long events are kept. They are removed in whole blocks, the oldest first, once they are sealed and
        /// delivered.
        retention: Span = Span::days(90), Start, between(Span::days(1), Span::days(36_500));
        /// How many events are kept. Beyond that number, the oldest are removed before their time, in whole blocks.
        /// If any node keeps a journal (`store.journal`), events of the last day are kept all the same.
        max_lines: Option<usize> = None => "as many as come", Start, if_set(at_least(1000));
        /// Beyond this number, events are removed even if they are not sealed yet, or if their time is over and they
        /// only wait to be delivered. Each loss is recorded. If any node keeps a journal (`store.journal`), events of
        /// the last day are kept all the same.
        ceiling: Option<usize> = None => "none: they are kept", Start, if_set(at_least(1000));
        /// File with the key that seals the log. The server creates it with mode 0600 at the first start. Nodes that
        /// share a database need the same key. Keep a copy apart from the backups.
        key_file: Option<SecretFile> = None => "`audit.key` in the data folder", Start;
        /// The audit key itself, 32 bytes in base64, in place of a file. Set it through the environment.
        key: Option<Secret> = None => "not set", Start, if_set(master_key);
        /// Files with earlier audit keys. Blocks that they sealed can still be proved, and the log continues under the
        /// new key.
        old_keys: Vec<SecretFile> = Vec::new(), Start;
        /// Whether a command that reads entries (`portiere audit list`, `export`, `tail`) writes an entry of its own,
        /// `audit.read`. Set this if you must prove who read the log; the log then grows each time it is read.
        reads: bool = false, Start;
    }

    /// Delivery of the audit log to a syslog server (RFC 5424).
    "audit.syslog." audit_syslog: AuditSyslog {
        /// URL of the syslog server: `tls://HOST:PORT` (RFC 5425) or `tcp://HOST:PORT` (RFC 6587, octet counting).
        url: Option<String> = None => "no syslog", Start, if_set(|url: &String| syslog_url(url));
        /// PEM file with the certificate authorities that may vouch for the receiver.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// PEM file with the client certificate and its chain, if the receiver requires client certificates (RFC 5425
        /// §4.2.1).
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file with the private key of that certificate.
        key: Option<SecretFile> = None => "none", Live;
        /// Whether entries sent over TLS count as delivered only when the receiver announces that it closes the
        /// connection (`close_notify`). rsyslog never does so with GnuTLS (`gtls`), but does with OpenSSL (`ossl`).
        /// With `false`, entries are lost if such a receiver dies, or if an attacker cuts the connection, just after
        /// the server has finished sending.
        require_close_notify: bool = true, Start;
    }

    /// Delivery of the audit log to an HTTP server, as JSON lines.
    "audit.http." audit_http: AuditHttp {
        /// URL to which entries are posted: `https://HOST/PATH`; `http://` only to this machine. Redirects are not
        /// followed.
        url: Option<String> = None => "no HTTP", Start, if_set(|url: &String| http_url(url));
        /// File with the token that is sent as `Authorization: Bearer`.
        token_file: Option<SecretFile> = None => "no token", Start;
        /// File with header fields to send with each request, one per line (`Authorization: Splunk …`, `DD-API-KEY:
        /// …`), with mode 0600.
        headers: Option<SecretFile> = None => "none", Start;
        /// File with the secret that signs each request, in `Portiere-Signature`.
        signature_key: Option<SecretFile> = None => "no signature", Start;
        /// PEM file with the certificate authorities that may vouch for the receiver.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// PEM file with the client certificate and its chain, if the receiver requires client certificates.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file with the private key of that certificate.
        key: Option<SecretFile> = None => "none", Live;
    }
}

/// Returns the loopback addresses of both families, with port 8080.
pub fn default_listen() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, 8080).into(), (Ipv6Addr::LOCALHOST, 8080).into()]
}
