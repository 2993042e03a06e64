//! Every page in every state worth seeing, for the tests and for looking at.

use super::*;
use rules::time::Time;

/// A page and the name of its file.
pub struct Sample {
    pub name: &'static str,
    pub html: String,
}

/// Maps the text that a sample shows, so that a test can put hostile text in every place at once.
pub type Words = fn(&'static str) -> &'static str;

const NOTHING: ProfileFields<'_> = ProfileFields { name: "", given_name: "", family_name: "", email: "" };
const NOW: Time = Time(1_763_650_000_000);

/// Makes all samples.
pub fn all(language: Language, words: Words) -> Vec<Sample> {
    let chrome = Chrome {
        language,
        brand: Brand { name: words("Portiere") },
        nonce: words("r4nd0mNonce"),
        base: "",
        signed_in: Some(words("ada")),
    };
    let stranger = Chrome { signed_in: None, ..chrome };
    let mut pages = sign_in(&stranger, words);
    pages.extend(entry(&stranger, words));
    pages.extend(device(&chrome, words));
    pages.extend(leaving(&stranger, words));
    pages.extend(errors(&stranger, words));
    pages.extend(reasons(&stranger, words));
    pages.extend(account(&chrome, words));
    pages.extend(home(&stranger, words));
    let owner = Visitor::SignedIn { name: words("Ada Lovelace"), owner: true };
    pages.push(sample("home_signed_in", front(owner, words).render(&chrome)));
    pages
}

fn sample(name: &'static str, html: String) -> Sample {
    Sample { name, html }
}

fn sign_in(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let login = LoginPage {
        flow: w("Zmxvdw"),
        client: Some(w("Field Notes")),
        device: false,
        login: "",
        again: false,
        already: None,
        problem: None,
        sign_up: Some(w("/signup?flow=Zmxvdw")),
    };
    let typed = LoginPage { login: w("ada@example.org"), ..login };
    let wrong = LoginPage { problem: Some(LoginProblem::Wrong), ..typed };
    let throttled = LoginPage { problem: Some(LoginProblem::Throttled { seconds: 45 }), ..typed };
    let busy = LoginPage { problem: Some(LoginProblem::Busy { seconds: 1, away: false }), ..typed };
    let again = LoginPage { again: true, ..typed };
    let own = LoginPage { client: None, sign_up: None, ..login };
    let already = LoginPage { already: Some(w("ada")), ..own };
    let device = LoginPage { device: true, ..own };
    let choice = AccountChoicePage {
        flow: w("Zmxvdw"),
        client: Some(w("Field Notes")),
        username: w("ada"),
        email: Some(w("ada@example.org")),
    };
    vec![
        sample("login", login.render(c)),
        sample("login_wrong", wrong.render(c)),
        sample("login_throttled", throttled.render(c)),
        sample("login_busy", busy.render(c)),
        sample("login_again", again.render(c)),
        sample("login_own", own.render(c)),
        sample("login_already", already.render(c)),
        sample("login_device", device.render(c)),
        sample("choose", choice.render(c)),
    ]
}

fn entry(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let setup = SetupPage { csrf: w("Y3NyZg"), token: "", username: "", email: "", minimum_password: 8, problems: &[] };
    let problems = [Problem::SetupCode, Problem::Username, Problem::Email, Problem::PasswordShort { minimum: 8 }];
    let refused =
        SetupPage { token: w("c2V0dXA"), username: w("a/da"), email: w("ada@"), problems: &problems, ..setup };
    let sign_up = SignUpPage {
        flow: w("Zmxvdw"),
        client: Some(w("Field Notes")),
        username: w("ada"),
        email: w("ada@example.org"),
        already: None,
        minimum_password: 8,
        problems: &[Problem::UsernameTaken, Problem::PasswordCommon, Problem::Busy { seconds: 2, away: false }],
        sign_in: Some(w("/login?flow=Zmxvdw")),
    };
    let consent = ConsentPage {
        flow: w("Zmxvdw"),
        csrf: w("Y3NyZg"),
        client: w("Field Notes"),
        destination: w("https://notes.example.org"),
        account: w("ada"),
        scopes: &["openid", "profile", "email", "offline_access", w("notes:write")],
    };
    vec![
        sample("setup", setup.render(c)),
        sample("setup_refused", refused.render(c)),
        sample("setup_done", SetupClosedPage { reason: SetupClosed::Done }.render(c)),
        sample("setup_expired", SetupClosedPage { reason: SetupClosed::Expired }.render(c)),
        sample("signup", SignUpPage { problems: &[], client: None, ..sign_up }.render(c)),
        sample("signup_already", SignUpPage { problems: &[], already: Some(w("ada")), ..sign_up }.render(c)),
        sample("signup_refused", sign_up.render(c)),
        sample("signup_later", SignUpPage { problems: &sign_up.problems[2..], ..sign_up }.render(c)),
        sample("consent", consent.render(c)),
    ]
}

fn device(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let code = DeviceCodePage { csrf: w("Y3NyZg"), user_code: w("WDJB-MJHT"), problem: None };
    let unknown = DeviceCodePage { problem: Some(DeviceProblem::Unknown), ..code };
    let throttled = DeviceCodePage { problem: Some(DeviceProblem::Throttled { seconds: 300 }), ..code };
    let confirm = DeviceConfirmPage {
        flow: w("Zmxvdw"),
        csrf: w("Y3NyZg"),
        user_code: w("WDJB-MJHT"),
        shown: w("c2hvd24"),
        client: w("Living Room TV"),
        account: w("ada"),
        requester: w("203.0.113.7"),
        requested: NOW - rules::time::Span::minutes(2),
        now: NOW,
        scopes: &["openid", "profile", w("films")],
    };
    let result = |outcome, client| DeviceResultPage { outcome, client }.render(c);
    vec![
        sample("device", code.render(c)),
        sample("device_unknown", unknown.render(c)),
        sample("device_throttled", throttled.render(c)),
        sample("device_confirm", confirm.render(c)),
        sample("device_approved", result(DeviceOutcome::Approved, Some(w("Living Room TV")))),
        sample("device_denied", result(DeviceOutcome::Denied, Some(w("Living Room TV")))),
        sample("device_expired", result(DeviceOutcome::Expired, Some(w("Living Room TV")))),
        sample("device_invalid", result(DeviceOutcome::Invalid, None)),
    ]
}

fn leaving(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let ask = SignOutPage {
        flow: w("Zmxvdw"),
        csrf: w("Y3NyZg"),
        client: Some(w("Field Notes")),
        account: w("ada"),
        detail: None,
    };
    let back = Back { name: w("Field Notes"), url: w("https://notes.example.org/bye?state=s"), posted: &[] };
    let post = FormPostPage {
        action: w("https://notes.example.org/callback"),
        client: w("Field Notes"),
        fields: &[(w("code"), w("c0de")), (w("state"), w("s")), ("submit", "x")],
    };
    vec![
        sample("sign_out", ask.render(c)),
        sample("signed_out", SignedOutPage { back: None, detail: None }.render(c)),
        sample("signed_out_back", SignedOutPage { back: Some(back), detail: None }.render(c)),
        sample("signed_out_unused", SignedOutPage { back: None, detail: Some("no such address") }.render(c)),
        sample("form_post", post.render(c)),
    ]
}

fn errors(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let local = ErrorPage {
        status: 400,
        reason: Reason::WrongRedirect,
        code: w("invalid_request"),
        detail: Some(w("redirect_uri is not registered for this client")),
        request_id: w("01J9Z3K8"),
        back: None,
        anew: None,
        repeats: false,
    };
    let back =
        Back { name: w("Field Notes"), url: w("https://notes.example.org/callback?error=invalid_scope"), posted: &[] };
    let returns =
        ErrorPage { reason: Reason::of_code("invalid_scope"), code: w("invalid_scope"), back: Some(back), ..local };
    let anew = Some(w("/oauth2/authorize?client_id=notes"));
    let stale = ErrorPage { status: 403, reason: Reason::Stale, code: "", detail: None, anew, ..local };
    let missing = ErrorPage { status: 404, reason: Reason::NotFound, code: "", detail: None, ..local };
    let busy = BusyPage { away: false, seconds: 3, request_id: w("01J9Z3K8"), retry: Some(Retry::Page) };
    let typed = [("csrf", w("Y3NyZg")), ("given_name", w("Ada")), ("email", w("ada@example.org"))];
    let form = |minimum| Some(Retry::Form { fields: &typed, minimum });
    vec![
        sample("error_local", local.render(c)),
        sample("error_back", returns.render(c)),
        sample("error_missing", missing.render(c)),
        sample("error_stale", stale.render(c)),
        sample("busy", busy.render(c)),
        sample("away", BusyPage { away: true, ..busy }.render(c)),
        sample("busy_form", BusyPage { retry: form(None), ..busy }.render(c)),
        sample("busy_passwords", BusyPage { retry: form(Some(8)), ..busy }.render(c)),
        sample("throttled", ThrottledPage { seconds: 60, request_id: w("01J9Z3K8"), retry: None }.render(c)),
        sample("throttled_form", ThrottledPage { seconds: 60, request_id: w("01J9Z3K8"), retry: form(None) }.render(c)),
    ]
}

/// The errors that look alike.
const REASONS: [(&str, u16, Reason); 13] = [
    ("error_request", 400, Reason::BadRequest),
    ("error_unknown_client", 400, Reason::UnknownClient),
    ("error_forbidden", 400, Reason::ClientForbidden),
    ("error_denied", 400, Reason::Denied),
    ("error_slow", 408, Reason::Slow),
    ("error_no_cookie", 403, Reason::NoCookie),
    ("error_foreign_form", 403, Reason::ForeignForm),
    ("error_method", 405, Reason::WrongMethod),
    ("error_form_answer", 405, Reason::FormAnswer),
    ("error_too_large", 413, Reason::TooLarge),
    ("error_host", 421, Reason::WrongHost),
    ("error_fault", 500, Reason::Fault),
    ("error_unavailable", 503, Reason::Unavailable),
];

fn reasons(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let page = |(name, status, reason)| {
        let anew = (reason == Reason::WrongHost).then(|| w("http://localhost:8080"));
        let request_id = w("01J9Z3K8");
        let page = ErrorPage { status, reason, code: "", detail: None, request_id, back: None, anew, repeats: true };
        sample(name, page.render(c))
    };
    REASONS.map(page).into()
}

const IPHONE: &str =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1";

fn account(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    let ago = |minutes| NOW - rules::time::Span::minutes(minutes);
    let session = |id, agent, current| SessionRow {
        id: w(id),
        agent: w(agent),
        address: w("2001:db8:4:1f::7"),
        signed_in: ago(5000),
        last_seen: ago(3),
        current,
    };
    let sessions = [
        session("1", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", true),
        session("2", IPHONE, false),
        session("3", "", false),
    ];
    let application = |client_id, name, minutes| ApplicationRow {
        client_id: w(client_id),
        name: w(name),
        scopes: &["openid", "profile", "offline_access"],
        since: ago(minutes),
    };
    let applications = [application("notes", "Field Notes", 90), application("tv", "Living Room TV", 100_000)];
    let (profile, fields) = ada(w);
    let full = AccountPage {
        csrf: w("Y3NyZg"),
        session: w("1"),
        notice: Some(Notice::ProfileSaved),
        problems: &[],
        profile,
        fields,
        shown: NOTHING,
        minimum_password: 8,
        sessions: &sessions,
        more_sessions: true,
        sessions_kept: false,
        applications: &applications,
        now: NOW,
    };
    let bare = Profile { name: "", email: "", email_verified: false, email_kept: false, ..full.profile };
    let problems = [Problem::CurrentPassword, Problem::PasswordPersonal];
    let empty = AccountPage {
        notice: None,
        problems: &problems,
        profile: bare,
        fields: NOTHING,
        sessions: &sessions[..1],
        more_sessions: false,
        applications: &[],
        ..full
    };
    let kept = [Problem::EmailKept, Problem::SessionsKept];
    let kept = AccountPage { notice: None, problems: &kept, sessions_kept: true, ..full };
    vec![
        sample("account", full.render(c)),
        sample("account_welcome", AccountPage { notice: Some(Notice::Welcome), ..full }.render(c)),
        sample("account_empty", empty.render(c)),
        sample("account_kept", kept.render(c)),
    ]
}

fn ada(w: Words) -> (Profile<'static>, ProfileFields<'static>) {
    let (name, email) = (w("Ada Lovelace"), w("ada@example.org"));
    let profile = Profile { username: w("ada"), name, email, email_verified: true, email_kept: true };
    (profile, ProfileFields { name, given_name: w("Ada"), family_name: w("Lovelace"), email })
}

fn front(visitor: Visitor<'static>, w: Words) -> HomePage<'static> {
    HomePage { visitor, issuer: w("http://localhost:8080"), try_it: true }
}

fn home(c: &Chrome<'_>, w: Words) -> Vec<Sample> {
    vec![
        sample("home_setup", front(Visitor::BeforeSetup { inhabited: true }, w).render(c)),
        sample("home", front(Visitor::SignedOut, w).render(c)),
        sample("try", TryPage { issuer: w("http://localhost:8080"), client_id: w("portiere-try") }.render(c)),
    ]
}
