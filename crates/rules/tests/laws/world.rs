//! A realm with three people, five applications and three browsers, its clock, and how decisions are settled in it.

use crate::ledger::{Law, Ledger};
use crate::tables::Tables;
use rules::decision::Change;
use rules::id::UserId;
use rules::login::cookie::Cookie;
use rules::login::session::{Session, proved};
use rules::oauth::client::{AccessFormat, AuthMethod, Client, Grant};
use rules::oauth::family::{RefreshToken, Sealing};
use rules::oauth::scope::Scope;
use rules::oauth::token::Context;
use rules::people::User;
use rules::realm::{Realm, Settings};
use rules::{Fresh, Handle, Span, Time};

/// The applications: an ordinary one, a trusted one with opaque tokens, a native one, one without refresh tokens, and
/// one that acts for itself.
pub const CLIENTS: [&str; 5] = ["web", "shop", "app", "thin", "job"];
/// The audience of every resource server here.
pub const RESOURCES: [&str; 2] = ["https://api.test", "https://other.test"];
/// As often as `app::settle` tries.
const TRIES: usize = 12;

/// A realm, and everything that ever happened in it.
pub struct World {
    pub now: Time,
    pub realm: Realm,
    pub sealing: Sealing,
    pub tables: Tables,
    pub browsers: [Option<Cookie>; 3],
    pub flows: Vec<crate::acts::authorize::Flow>,
    pub ledger: Ledger,
    drawn: u64,
}

/// What was decided: changes to commit, and what it means once they are.
pub struct Plan {
    pub changes: Vec<Change>,
    pub then: Box<dyn FnOnce(&mut World)>,
}

impl Plan {
    /// Nothing happens.
    pub fn nothing() -> Self {
        Plan::of(Vec::new(), |_| ())
    }
    /// These changes, and then that.
    pub fn of(changes: Vec<Change>, then: impl FnOnce(&mut World) + 'static) -> Self {
        Plan { changes, then: Box::new(then) }
    }
}

/// A decision, to be taken on the facts as they are.
pub type Decide<'a> = dyn Fn(&World, &Fresh) -> Plan + 'a;

impl World {
    /// As it is set up; `grace` is that of refresh tokens.
    pub fn new(grace: Span) -> Self {
        let settings = Settings { refresh_grace: grace, signup: true, ..Settings::default() };
        let realm = Realm { id: "main".into(), issuer: "https://id.test".into(), settings };
        let users = (0..3).map(|n| user(&format!("u{n}"))).map(|user| (user.id.clone(), user)).collect();
        let clients = CLIENTS.iter().map(|name| client(name)).map(|client| (client.id.clone(), client)).collect();
        World {
            now: Time(1_700_000_000_000),
            realm,
            sealing: Sealing { tag: [1; 32], grace: [2; 32] },
            tables: Tables { users, clients, ..Tables::default() },
            browsers: [None, None, None],
            flows: Vec::new(),
            ledger: Ledger::default(),
            drawn: 0,
        }
    }
    /// What grants need.
    pub fn context(&self) -> Context<'_> {
        Context { realm: &self.realm, sealing: &self.sealing }
    }
    /// Nothing takes no time.
    pub fn tick(&mut self) {
        self.now = self.now + Span(1);
    }
    /// Chance that was never drawn before.
    pub fn fresh(&mut self) -> Fresh {
        self.drawn += 1;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.drawn.to_be_bytes());
        Fresh::new(seed)
    }
    /// The session that a browser's cookie proves.
    pub fn proved(&self, browser: usize) -> Option<(Session, User)> {
        let cookie = self.browsers[browser].as_ref()?;
        proved(cookie, self.tables.session(cookie).as_ref(), &self.realm.settings, self.now).cloned()
    }
    /// A refresh token as the token endpoint reads it.
    pub fn refresh_token(&self, text: &str) -> Option<RefreshToken> {
        RefreshToken::read(text, &self.sealing)
    }
    /// Commits a plan; gives back whether its guards held.
    pub fn commit(&mut self, plan: Plan) -> bool {
        let committed = self.tables.apply(&plan.changes).is_ok();
        if committed {
            (plan.then)(self);
        }
        committed
    }
    /// Decides and commits until a commit holds, with the same chance every time.
    pub fn settle(&mut self, decide: &Decide<'_>) {
        let fresh = self.fresh();
        self.settle_with(decide, &fresh);
    }
    fn settle_with(&mut self, decide: &Decide<'_>, fresh: &Fresh) {
        let settled = (0..TRIES).any(|_| {
            let plan = decide(self, fresh);
            self.commit(plan)
        });
        self.ledger.hold(Law::AttemptsSettle, settled, "a decision that nobody disturbs fails its own guards");
    }
    /// Two decisions on the same facts: the first commits, then the second commits or is taken again.
    pub fn race(&mut self, first: &Decide<'_>, second: &Decide<'_>) {
        let (mine, theirs) = (self.fresh(), self.fresh());
        let (plan, rival) = (first(self, &mine), second(self, &theirs));
        if !self.commit(plan) {
            self.settle_with(first, &mine);
        }
        if !self.commit(rival) {
            self.ledger.meet("a race was decided again");
            self.settle_with(second, &theirs);
        }
    }
}

/// Somebody, with a password.
pub fn user(id: &str) -> User {
    User {
        email: Some(format!("{id}@people.test")),
        email_verified: true,
        password: Some("stored".to_owned()),
        ..User::new(UserId(id.to_owned()), id, Time(0))
    }
}

/// One of [`CLIENTS`].
pub fn client(name: &str) -> Client {
    let people = "openid profile email offline_access";
    let (scope, redirect) = match name {
        "job" => ("jobs:run jobs:read", None),
        "app" => (people, Some("http://127.0.0.1/cb".to_owned())),
        _ => (people, Some(format!("https://{name}.test/cb"))),
    };
    let grants = match name {
        "job" => vec![Grant::ClientCredentials],
        "thin" => vec![Grant::AuthorizationCode],
        "app" | "web" => vec![Grant::AuthorizationCode, Grant::RefreshToken, Grant::DeviceCode],
        _ => vec![Grant::AuthorizationCode, Grant::RefreshToken],
    };
    Client {
        secret: (name != "app").then(|| Handle::of("secret")),
        grants,
        scope: Scope::parse(scope).expect("legal"),
        auth_methods: vec![if name == "app" { AuthMethod::None } else { AuthMethod::Basic }],
        native: name == "app",
        access_format: if name == "shop" { AccessFormat::Opaque } else { AccessFormat::Jwt },
        resources: if name == "web" { RESOURCES.map(String::from).to_vec() } else { Vec::new() },
        trusted: name == "shop",
        claims_in_id_token: name == "thin",
        ..Client::new(name, redirect.into_iter().collect())
    }
}
