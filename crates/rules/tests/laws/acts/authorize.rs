//! From an authorization request to a code, page by page.

use crate::ledger::{IssuedCode, Law, Line};
use crate::world::{Plan, RESOURCES, World};
use rules::decision::Change;
use rules::id::{ClientId, SessionId, UserId};
use rules::oauth::authorize::{Request, read};
use rules::oauth::code::Code;
use rules::oauth::params::Params;
use rules::oauth::scope::Scope;
use rules::oauth::step::{Facts, Progress, Step, issue, next};
use rules::secret::base64url;
use rules::{Fresh, Secret, Span, Time};
use sha2::{Digest, Sha256};

/// What a request asks for, by number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Into [`PROMPTS`].
    pub prompt: usize,
    /// Seconds.
    pub max_age: Option<i64>,
    /// Into [`SCOPES`].
    pub scope: usize,
    /// Whom the application expects: nobody, or one of the people, by hint (even) or by claim (odd).
    pub expects: Option<(u8, bool)>,
    /// Names one audience.
    pub resource: bool,
}

/// Values of `prompt`.
pub const PROMPTS: [&str; 7] = ["", "none", "login", "consent", "select_account", "create", "login consent"];
/// Values of `scope`.
pub const SCOPES: [&str; 4] =
    ["openid", "openid email", "openid profile email offline_access", "openid admin jobs:run offline_access"];

/// A request on its way through the pages.
#[derive(Clone)]
pub struct Flow {
    pub browser: usize,
    pub client: ClientId,
    began: Time,
    pub progress: Progress,
    shape: Shape,
    verifier: String,
}

impl Flow {
    /// Whom the application expects.
    fn expected(&self) -> Option<UserId> {
        self.shape.expects.map(|(who, _)| UserId(format!("u{who}")))
    }
    fn hint(&self) -> Option<UserId> {
        self.expected().filter(|_| self.shape.expects.is_some_and(|(_, by_claim)| !by_claim))
    }
    fn params(&self, redirect: &str) -> Params {
        let challenge = base64url(&Sha256::digest(self.verifier.as_bytes()));
        let mut pairs = vec![
            ("client_id", self.client.0.clone()),
            ("redirect_uri", redirect.to_owned()),
            ("response_type", "code".to_owned()),
            ("scope", SCOPES[self.shape.scope].to_owned()),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256".to_owned()),
            ("prompt", PROMPTS[self.shape.prompt].to_owned()),
            ("nonce", "n".to_owned()),
        ];
        pairs.extend(self.shape.max_age.map(|age| ("max_age", age.to_string())));
        pairs.extend(self.shape.resource.then(|| ("resource", RESOURCES[0].to_owned())));
        if let (Some(who), None) = (self.expected(), self.hint()) {
            // One, or one of several.
            let sub =
                if who.0.ends_with('1') { format!(r#""value":"{who}""#) } else { format!(r#""values":["{who}","x"]"#) };
            pairs.push(("claims", format!(r#"{{"id_token":{{"sub":{{{sub}}}}}}}"#)));
        }
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Params::parse(pairs).expect("no parameter is sent twice")
    }
}

/// A request arrives.
pub fn arrive(world: &World, fresh: &Fresh, (browser, client): (usize, &ClientId), shape: Shape) -> Plan {
    let progress = Progress { proved: false, chosen: false, consented: false };
    let verifier = fresh.secret("verifier").reveal().to_owned();
    advance(world, fresh, Flow { browser, client: client.clone(), began: world.now, progress, shape, verifier }, None)
}

/// A page is answered, or the person comes back from one.
pub fn go_on(world: &World, fresh: &Fresh, flow: &Flow, yes: bool) -> Plan {
    advance(world, fresh, flow.clone(), Some(yes))
}

fn advance(world: &World, fresh: &Fresh, mut flow: Flow, answer: Option<bool>) -> Plan {
    let Some(client) = world.tables.client(&flow.client) else { return Plan::nothing() };
    let redirect = client.redirect_uris.first().map_or("https://nowhere.test/", String::as_str);
    let Ok(request) = read(&flow.params(redirect), Some(client), &world.realm) else { return Plan::nothing() };
    let session = world.proved(flow.browser);
    let consent =
        session.as_ref().and_then(|(_, user)| world.tables.consents.get(&(user.id.clone(), client.id.clone())));
    let hint = flow.hint();
    // Whoever signed in in this browser since then did so for it.
    flow.progress.proved = session.as_ref().is_some_and(|(session, _)| session.auth_time.min(world.now) > flow.began);
    let facts = Facts { client, session: session.as_ref(), consent, hint: hint.as_ref() };
    let step = next(&request, &facts, flow.progress, world.now);
    match (&step, answer) {
        (Ok(Step::Consent(_)), Some(true)) => flow.progress.consented = true,
        (Ok(Step::Choose), Some(true)) => flow.progress.chosen = true,
        (Ok(Step::Issue), _) => {}
        (Ok(_), Some(_)) | (Err(_), _) => return Plan::nothing(),
        (Ok(_), None) => {
            return Plan::of(Vec::new(), move |world| {
                world.ledger.hold(Law::PromptNoneIsSilent, !request.prompt.none, "prompt=none shows a page");
                world.flows.push(flow);
            });
        }
    }
    let decision = issue(&request, &facts, flow.progress, &world.realm, (world.now, fresh));
    let Ok(response) = decision.reply else { return Plan::nothing() };
    let code = decision.changes.iter().find_map(|change| match change {
        Change::IssueCode(code) => Some((**code).clone()),
        _ => None,
    });
    let text = response.fields.iter().find(|(name, _)| *name == "code").map(|(_, text)| Secret::new(text.clone()));
    let (Some(code), Some(text), Some((session, _))) = (code, text, session) else {
        unreachable!("a response without a code, or without anybody")
    };
    let proof = (session.id, world.ledger.visits[&code.session].auth_time);
    Plan::of(decision.changes, move |world| issued(world, &flow, &request, (code, text), proof))
}

/// A code, with the session that yielded it and when its person had proved who they are when it was decided.
fn issued(
    world: &mut World,
    flow: &Flow,
    request: &Request,
    (code, text): (Code, Secret),
    (session, proved): (SessionId, Time),
) {
    let trusted = world.tables.clients[&code.client].trusted;
    let ledger = &mut world.ledger;
    ledger.meet("code");
    ledger.use_visit(&session, world.now);
    let pair = (code.user.clone(), code.client.clone());
    if flow.progress.consented {
        ledger.meet("consent");
        let agreed = ledger.agreed.entry(pair.clone()).or_default();
        *agreed = agreed.either(&request.scope);
    }
    let covered = ledger.agreed.get(&pair).is_some_and(|agreed| code.granted.scope.is_within(agreed));
    ledger.hold(Law::ConsentIsNeeded, trusted || covered, "a code for what nobody agreed to");
    let asked = Scope::parse(SCOPES[flow.shape.scope]).expect("legal");
    ledger.hold(Law::NothingWidens, code.granted.scope.is_within(&asked), "a code for more than was asked");

    let expected = flow.expected().is_none_or(|who| who == code.user);
    ledger.hold(Law::ExpectedPerson, expected, "a code for somebody else than the application expects");
    let fresh = proved.min(world.now) > flow.began;
    let young = flow.shape.max_age.is_none_or(|age| proved + Span::seconds(age) >= world.now);
    let (told, whose) = (proved == code.granted.auth_time, ledger.visits[&session].user == code.user);
    ledger.hold(Law::SignInIsAsAsked, fresh || !request.prompt.login, "prompt=login without a new sign-in");
    ledger.hold(Law::SignInIsAsAsked, fresh || young, "a sign-in older than max_age");
    ledger.hold(Law::SignInIsAsAsked, told && whose, "a code that tells of another sign-in");

    let line = Line {
        client: code.client,
        user: code.user,
        session,
        granted: code.granted,
        by_consent: !trusted || flow.progress.consented,
        device: false,
        began: None,
        chain: Vec::new(),
        ended: None,
        dead: false,
    };
    ledger.lines.insert(code.family.clone(), line);
    ledger.codes.push(IssuedCode {
        text,
        family: code.family,
        redirect: code.redirect_uri,
        verifier: flow.verifier.clone(),
        expires: code.expires,
        used: false,
        yielded: false,
        dead: false,
    });
}
