//! The table of options: one entry each, and everything else comes from it.

use super::checks::{
    Check, at_least, between, http_url, if_set, listens, master_key, no_twins, not_all_exempt, not_everybody,
    readable_name, syslog_url,
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
            /// What was odd but is no reason to refuse: unknown `PORTIERE_` variables,
            /// a server that nobody but this machine can name.
            pub warnings: Vec<String>,
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
    /// Where the server listens and what it is called.
    "" server: Server {
        /// Addresses to listen on. Port 0 takes any free port.
        /// Where a machine has no IPv6, the default's second address is left out.
        listen: Vec<SocketAddr> = default_listen(), Start, |all: &Vec<SocketAddr>| listens(all);
        /// The URL under which people and applications reach the server: the issuer, byte for byte.
        /// It must be https, except on localhost, and have neither a query, a fragment nor a trailing slash.
        public_url: Option<PublicUrl> = None => "http://localhost with the port of `listen`", Start;
        /// The data folder, made with mode 0700.
        data: PathBuf = "./data".into(), Start;
        /// Whether the home page offers "Try it"; `auto` means on a localhost public URL.
        try_it: TryIt = TryIt::Auto, Start;
    }

    /// How the pages present themselves.
    "brand." brand: Brand {
        /// The name on every page.
        name: String = "Portiere".into(), Start, |name: &String| readable_name(name);
    }

    /// Where facts are kept.
    "store." store: Store {
        /// The database: `sqlite:FILE`, where a relative file lies in the data folder, or a server that several nodes share:
        /// `postgres://USER:PASSWORD@HOST/DATABASE` or `mysql://USER:PASSWORD@HOST/DATABASE` (also for MariaDB). Give one with
        /// a password through the environment, or the password alone in a file (`store.password_file`).
        url: StoreUrl = StoreUrl::Sqlite("portiere.db".into()), Start;
        /// A server: file of the password, where `store.url` has none: as it is, without the end of its line; nothing in it is
        /// percent-encoded. Each new connection takes what is in it by then.
        password_file: Option<SecretFile> = None => "the one in `store.url`, if any", Live;
        /// SQLite: connections that read.
        readers: Option<usize> = None => "one a core, at least 2 and at most 4", Start, if_set(between(1, 64));
        /// SQLite: when a write is acknowledged: `full` once it is on the disk; with `normal` a power cut may lose the
        /// last ones.
        synchronous: Synchronous = Synchronous::Full, Start;
        /// A server: connections that are kept to it.
        connections: usize = 8, Start, between(2, 512);
        /// A server: the longest that a read or a write may take. Connecting to one is given up earlier, so that there is time
        /// for the next: with PostgreSQL after 3 s (`connect_timeout` in the URL), or this where it is shorter; with MySQL
        /// and MariaDB after a quarter of this.
        timeout: Duration = Duration::from_secs(10), Start,
            between(Duration::from_secs(1), Duration::from_secs(300));
        /// PostgreSQL: `kept` prepares each statement once for a connection; `unnamed` sends it anew each time, for a pooler
        /// that gives each transaction another connection (PgBouncer in transaction mode). MySQL and MariaDB: always kept.
        statements: Statements = Statements::Kept, Start;
        /// A server: PEM file of the authorities that may vouch for it.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// A server that wants a certificate of its clients: PEM file of ours, with its chain.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file of that certificate's private key.
        key: Option<SecretFile> = None => "none", Live;
        /// A server that is configured to lose acknowledged writes is refused, unless the loss is named here: `commits` (the
        /// last moments, when its process dies) or `database` (everything, at power loss).
        accept_loss: Vec<Loss> = Vec::new(), Start;
        /// A server: what you know of its replication, which no server can say of itself. `strict`: PostgreSQL never
        /// acknowledges what no standby has confirmed, also when its standbys are gone (Patroni's `synchronous_mode_strict`);
        /// while one confirms, no journal is kept. `observed`: it may go on alone. `bounded`: another server may take over that
        /// did not get the last writes, also one that the URL does not name.
        replication: Replication = Replication::Observed, Start;
        /// A server: what each node keeps so that nothing acknowledged is undone by a failover. `auto` keeps a journal in the
        /// data folder while the server could lose acknowledged writes; `off` never does, and a failover then undoes what it
        /// undoes.
        journal: Journal = Journal::Auto, Start;
    }

    /// How much of the machine password hashing may take.
    "hash." hash: Hash {
        /// Threads that hash. Cores are those that the process may use: a container's limit of CPU time (`cpu.max`) counts,
        /// rounded down to whole ones, and 1 at least.
        threads: Option<usize> = None => "one a core", Start, if_set(between(1, 1024));
        /// How long a sign-in may wait for its turn. Past that it is refused at once with 503 and Retry-After.
        max_wait: Duration = Duration::from_secs(3), Start,
            between(Duration::from_millis(100), Duration::from_secs(60));
        /// Ceiling of the memory in which hashes are computed.
        memory: Option<Size> = None => "a quarter of the machine's memory", Start, if_set(at_least(Size(8 << 20)));
        /// Whether a hash that was imported or made under another policy is replaced when its owner signs in. Turn it off
        /// only while another system reads the same hashes.
        upgrade: bool = true, Start;
        /// Peppers: secrets of 32 bytes, made by `portiere hash pepper`, that password hashes need beside the database. The
        /// first is for new hashes; keep the others until nobody's hash needs them, which happens as people sign in. A
        /// pepper that is lost takes every password with it.
        peppers: Vec<KeyFile> = Vec::new(), Start;
        /// Binding keys: secrets of 32 bytes, made by `portiere hash binding`, under which a hash is worth nothing for any other
        /// account. Hash workers need one, and a pepper. The first is for new hashes; keep the others until nobody's hash needs
        /// them. One that is lost takes every password with it.
        binding_keys: Vec<KeyFile> = Vec::new(), Start;
        /// Secrets of other systems that imported hashes were made with: Firebase's signer key in base64, Devise's pepper. Each
        /// file holds the text as that system shows it. Keep them until nobody's hash needs them, which happens as people
        /// sign in.
        import_keys: Vec<KeyFile> = Vec::new(), Start;
    }

    /// The parameters of new password hashes (Argon2id, RFC 9106). They cannot go below OWASP's list.
    "hash.argon2." argon2: Argon2 {
        /// Memory of one hash, in KiB.
        memory_kib: u32 = 19_456, Start, between(7_168, 1_048_576);
        /// Passes over that memory.
        passes: u32 = 2, Start, between(1, 64);
        /// Lanes of one hash.
        lanes: u32 = 1, Start, between(1, 64);
    }

    /// Machines that hash passwords for this server: see docs/guide/workers.md.
    "workers." workers: Workers {
        /// Addresses on which hash workers dial in, over TLS with keys of their own. None: there are no workers.
        listen: Vec<SocketAddr> = Vec::new(), Start;
    }

    /// What a password must be.
    "password." password: Password {
        /// The least number of characters. NIST SP 800-63B asks for 15 where the password is the only factor.
        min_length: usize = 8, Start, between(8, 64);
    }

    /// Accounts that people make themselves.
    "signup." signup: Signup {
        /// Whether anybody may make an account.
        enabled: bool = false, Start;
    }

    /// Lives of tokens.
    "token." token: Token {
        /// Life of an access token. A signed one that was revoked is still good elsewhere until it ends.
        access_ttl: Span = Span::minutes(15), Start, between(Span::seconds(10), Span::hours(24));
        /// Life of an ID token.
        id_ttl: Span = Span::minutes(15), Start, between(Span::seconds(10), Span::hours(24));
    }

    /// Authorization codes.
    "code." code: Code {
        /// Life of an authorization code (RFC 6749 §4.1.2 recommends at most 10 minutes).
        ttl: Span = Span::seconds(60), Start, between(Span::seconds(1), Span::minutes(10));
    }

    /// Refresh tokens.
    "refresh." refresh: Refresh {
        /// A refresh token that is not used for so long is dead.
        idle: Span = Span::days(30), Start, between(Span::minutes(1), Span::days(3650));
        /// No line of refresh tokens outlives this.
        absolute: Span = Span::days(90), Start, between(Span::minutes(1), Span::days(3650));
        /// How long the token before the current one, sent again by its client, still yields the same successor,
        /// so that a lost response signs nobody out. `0s`: any reuse revokes the whole line.
        grace: Span = Span::seconds(10), Start, between(Span::ZERO, Span::minutes(5));
    }

    /// The device flow (RFC 8628).
    "device." device: Device {
        /// Life of a device code.
        ttl: Span = Span::minutes(10), Start, between(Span::minutes(1), Span::minutes(30));
    }

    /// Sign-in sessions.
    "session." session: Session {
        /// A session that is not used for so long is over.
        idle: Span = Span::hours(24), Start, between(Span::minutes(1), Span::days(3650));
        /// No session outlives this.
        absolute: Span = Span::days(30), Start, between(Span::minutes(1), Span::days(3650));
        /// How seldom the last use of a session is written down: at most so often, and often enough that a session in use
        /// never counts as idle.
        touch_every: Span = Span::minutes(5), Start, between(Span::ZERO, Span::hours(24));
    }

    /// Proof keys for codes (RFC 7636).
    "pkce." pkce: Pkce {
        /// Lets clients that have a secret or a key leave out PKCE. Public clients never may.
        optional_for_confidential: bool = false, Start;
    }

    /// Signing keys and the key that encrypts them.
    "keys." keys: Keys {
        /// Age at which the next signing key takes over.
        rotate_after: Span = Span::days(90), Start, between(Span::days(1), Span::days(3650));
        /// File of the master key, made with mode 0600 at the first start. Keep a copy apart from the backups.
        master: Option<SecretFile> = None => "`master.key` in the data folder", Start;
        /// The master key itself, 32 bytes in base64, in place of a file. Give it through the environment.
        master_key: Option<Secret> = None => "not set", Start, if_set(master_key);
    }

    /// Slowing down guessers. Only failures count, and those of strangers keep nobody out of a browser or an application in
    /// which they have signed in before (of several people, the four who were there last).
    "throttle." throttle: Throttle {
        /// From this failure of an account on, each costs a wait.
        free_failures: u32 = 5, Start, between(1, 1000);
        /// The wait after that failure; it doubles with each further one.
        base_delay: Span = Span::seconds(1), Start, between(Span(100), Span::minutes(10));
        /// The longest wait.
        max_delay: Span = Span::minutes(15), Start, between(Span::seconds(1), Span::hours(24));
        /// Failures of an address (a /64 for IPv6) that cost nothing.
        address_free_failures: u32 = 50, Start, between(1, 1_000_000);
        /// How many times as many failures as one address the network around it may have (a /24, a /56 for IPv6; four times
        /// as many again for a /48), so that guesses that are spread over its addresses are slowed, too. 0: networks are
        /// not counted.
        network_factor: u32 = 10, Start, between(0, 1000);
    }

    /// What a connection may take of the server.
    "limits." limits: Limits {
        /// Time in which a request's headers, and before them the TLS handshake, must have come.
        header_timeout: Duration = Duration::from_secs(10), Start,
            between(Duration::from_millis(100), Duration::from_secs(300));
        /// Time in which a request's body must have come.
        body_timeout: Duration = Duration::from_secs(15), Start,
            between(Duration::from_millis(100), Duration::from_secs(600));
        /// Time after which a connection without a request is closed.
        idle_timeout: Duration = Duration::from_secs(60), Start,
            between(Duration::from_secs(1), Duration::from_secs(3600));
        /// Time in which a server that was told to stop still answers everybody while `/readyz` is 503 and each answer
        /// closes its connection, so that a proxy loses none.
        stop_delay: Option<Duration> = None => "3s where the database can serve several nodes, 0s on SQLite", Start,
            if_set(between(Duration::ZERO, Duration::from_secs(600)));
        /// Time that running requests are given when the server stops.
        drain_timeout: Duration = Duration::from_secs(25), Start,
            between(Duration::from_millis(100), Duration::from_secs(600));
        /// The largest body.
        body_size: Size = Size(64 << 10), Start, between(Size(16 << 10), Size(16 << 20));
        /// Connections from one address (a /64 for IPv6) at a time; by HTTP/2 each further request at the same time counts as
        /// one more. Loopback and listed proxies are exempt.
        connections_per_address: usize = 1024, Start, at_least(1);
        /// Further networks of trusted machines, whose connections, failures and wrong passwords are not counted per address
        /// (those of an account are).
        exempt_addresses: Vec<Cidr> = Vec::new(), Start, |all: &Vec<Cidr>| not_all_exempt(all);
        /// Connections in all, counted in the same way.
        connections: usize = 20_000, Start, at_least(1);
        /// Requests of applications (tokens, introspection, userinfo, keys) that are worked on at a time. More wait.
        tokens: usize = 512, Start, between(1, 1_000_000);
        /// Pages, and forms without a password, that are worked on at a time.
        pages: usize = 256, Start, between(1, 1_000_000);
        /// Forms with a password that are worked on at a time; how long they wait for their hash is `hash.max_wait`.
        passwords: usize = 4096, Start, between(1, 1_000_000);
        /// The longest that a request waits for a place among these. Who would wait longer is told at once when to come
        /// back.
        max_wait: Duration = Duration::from_secs(1), Start,
            between(Duration::from_millis(10), Duration::from_secs(60));
        /// Failed requests a second of one address (a /64 for IPv6), in the long run; beyond, it is told to slow down. What
        /// succeeds does not count, but for what devices ask for, and revocations that change nothing, in the name of a
        /// public client. 0 for no limit. Loopback is exempt.
        failures_per_address: u32 = 10, Start, between(0, 1_000_000);
        /// Failed requests of an address at once.
        failures_burst: u32 = 1000, Start, between(1, 1_000_000);
        /// Requests a second of one client that authenticates; twice as many at once. 0 for no limit.
        requests_per_client: u32 = 0, Start, between(0, 1_000_000);
        /// Requests a second of everybody together, for each kind of work (tokens, pages, passwords) by itself; twice as many
        /// at once. 0 for no limit.
        requests_per_realm: u32 = 0, Start, between(0, 1_000_000);
    }

    /// Reverse proxies in front of the server.
    "proxy." proxy: Proxy {
        /// Networks of the proxies whose forwarded headers are believed. Nobody else's ever are.
        trusted: Vec<Cidr> = Vec::new(), Start, |all: &Vec<Cidr>| not_everybody(all);
        /// The one header in which they name the client. The other one is ignored, since a proxy passes it on as
        /// it came.
        header: ProxyHeader = ProxyHeader::XForwardedFor, Start;
    }

    /// TLS, where no proxy does it.
    "tls." tls: Tls {
        /// PEM file of the certificate and its chain.
        certificate: Option<PathBuf> = None => "no TLS", Live;
        /// PEM file of the certificate's private key.
        key: Option<SecretFile> = None => "no TLS", Live;
    }

    /// Log lines, on standard error.
    "log." log: Log {
        /// `text` for people, `json` for machines.
        format: LogFormat = LogFormat::Text, Start;
        /// The least severe level that is written.
        level: LevelFilter = LevelFilter::INFO, Start;
        /// A request that takes longer is logged, with where its time went. `0s`: none is.
        slow: Duration = Duration::from_secs(1), Start;
    }

    /// Figures for Prometheus.
    "metrics." metrics: Metrics {
        /// Addresses on which `/metrics` is served, such as 127.0.0.1:9464, and nothing else. Empty: nowhere. It speaks HTTP
        /// without TLS.
        listen: Vec<SocketAddr> = Vec::new(), Start, |all: &Vec<SocketAddr>| no_twins(all);
        /// File of the secret that a scraper has to send (`Authorization: Bearer …`), at least 16 characters, mode 0600. An
        /// address beyond this machine's loopback needs one.
        secret: Option<SecretFile> = None => "none", Live;
    }

    /// Traces of requests (OpenTelemetry), for a collector.
    "trace." trace: Trace {
        /// Where they are sent to: OTLP over HTTP, in protobuf. Without a path it is `/v1/traces` there.
        endpoint: Option<Target> = None => "nowhere: no request is traced", Start;
        /// Which share of the requests is traced. Where a proxy in `proxy.trusted` says in `traceparent` whether it is, that
        /// holds.
        sample: Share = Share(0.1), Start, between(Share(0.0), Share(1.0));
        /// File of header fields that go with them, a line each (`Authorization: Bearer …`), mode 0600. The endpoint must then
        /// be https, except on this machine.
        headers: Option<SecretFile> = None => "none", Start;
        /// PEM file of the authorities that may vouch for an https endpoint.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// If it wants a certificate of its clients: PEM file of ours, with its chain.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file of that certificate's private key.
        key: Option<SecretFile> = None => "none", Live;
    }

    /// When `/readyz` says no although nothing is broken.
    "ready." ready: Ready {
        /// After so long a time in which a queue (of passwords, of the database, or at the door) was nearly full, the server is
        /// not ready until it has shrunk to half: whoever asks sends people to another node. `0s`: never, for a server that
        /// is alone.
        strained_after: Duration = Duration::from_secs(5), Start,
            between(Duration::ZERO, Duration::from_secs(600));
    }

    /// The record of who did what.
    "audit." audit: Audit {
        /// How long events are kept. They go in whole blocks, the oldest first, once they are sealed and delivered.
        retention: Span = Span::days(90), Start, between(Span::days(1), Span::days(36_500));
        /// How many events are kept: beyond that the oldest go before their time, in whole blocks. With a journal
        /// (`store.journal`) those of the last day stay all the same.
        max_lines: Option<usize> = None => "as many as come", Start, if_set(at_least(1000));
        /// Beyond so many, events go that are not sealed yet, and those that only wait to be delivered although their time has
        /// come. Each loss is written down. With a journal (`store.journal`) those of the last day stay all the same.
        ceiling: Option<usize> = None => "none: they are kept", Start, if_set(at_least(1000));
        /// File of the key under which the log is sealed, made with mode 0600 at the first start. Nodes that share a database
        /// need the same one. Keep a copy apart from the backups.
        key_file: Option<SecretFile> = None => "`audit.key` in the data folder", Start;
        /// The key itself, 32 bytes in base64, in place of a file. Give it through the environment.
        key: Option<Secret> = None => "not set", Start, if_set(master_key);
        /// Files of keys from before: what they sealed can be proved, and the log goes on under the new one.
        old_keys: Vec<SecretFile> = Vec::new(), Start;
        /// Whether a command that reads lines (`portiere audit list`, `export`, `tail`) leaves one of its own, `audit.read`, for who
        /// has to prove who read the log. It grows by being read then.
        reads: bool = false, Start;
    }

    /// Delivery of the audit log to a syslog server (RFC 5424).
    "audit.syslog." audit_syslog: AuditSyslog {
        /// Where it is: `tls://HOST:PORT` (RFC 5425) or `tcp://HOST:PORT` (RFC 6587, octet counting).
        url: Option<String> = None => "no syslog", Start, if_set(|url: &String| syslog_url(url));
        /// PEM file of the authorities that may vouch for it.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// If it wants a certificate of its clients (RFC 5425 §4.2.1): PEM file of ours, with its chain.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file of that certificate's private key.
        key: Option<SecretFile> = None => "none", Live;
        /// Whether lines count as delivered over TLS only when the receiver says that it closes (`close_notify`). rsyslog with
        /// GnuTLS (`gtls`) never does, with OpenSSL (`ossl`) it does. With `false` lines are lost where such a receiver dies,
        /// or somebody on the way cuts the connection, just after our end.
        require_close_notify: bool = true, Start;
    }

    /// Delivery of the audit log to an HTTP server, as lines of JSON.
    "audit.http." audit_http: AuditHttp {
        /// Where they are posted to: `https://HOST/PATH`. Redirects are not followed.
        url: Option<String> = None => "no HTTP", Start, if_set(|url: &String| http_url(url));
        /// File of the token that is sent as `Authorization: Bearer`.
        token_file: Option<SecretFile> = None => "no token", Start;
        /// File of header fields that go with each request, a line each (`Authorization: Splunk …`, `DD-API-KEY: …`), mode 0600.
        headers: Option<SecretFile> = None => "none", Start;
        /// File of the secret with which each request is signed, in `Portiere-Signature`.
        signature_key: Option<SecretFile> = None => "no signature", Start;
        /// PEM file of the authorities that may vouch for it.
        authorities: Option<PathBuf> = None => "those of the system", Live;
        /// If it wants a certificate of its clients: PEM file of ours, with its chain.
        certificate: Option<PathBuf> = None => "none", Live;
        /// PEM file of that certificate's private key.
        key: Option<SecretFile> = None => "none", Live;
    }
}

/// Loopback in both families, port 8080.
pub fn default_listen() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, 8080).into(), (Ipv6Addr::LOCALHOST, 8080).into()]
}
