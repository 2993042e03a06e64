//! Providers whose pages are not as ours: what browsers do by themselves is done, and what people see through is seen through.

use crate::provider::{Manner, Provider};
use crate::{is_clean, is_lively, measured, measured_until, plan, refused};
use load::plan::{Plan, Workload};
use load::run::run;

/// Where every client of the tests has its codes sent.
pub const URI: &str = "http://localhost:9/callback";

/// What a provider does in its own way between request and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A page that leads on to the sign-in page.
    LeadsOn,
    /// A page that posts itself to the sign-in page, as those of SAML do.
    PostsItself,
    /// The sign-in page with 401.
    Unauthorized,
    /// The sign-in page below another base.
    Based,
    /// A cookie for the sign-in page's path, while one of its name is removed elsewhere.
    OnPaths,
    /// The response as a form that posts itself.
    FormPost,
    /// The same without a script that can be seen: a button.
    FormPostByHand,
    /// The response as an address that a page leads on to.
    LeadsBack,
    /// Fifteen redirects before the response.
    FarRound,
    /// Five pages after the password.
    ManyPages,
    /// A question that is sent by GET.
    GetQuestion,
    /// A form for a script, without a method, and behind it one for browsers without.
    ScriptAndForm,
    /// A form for a script alone.
    Script,
    /// The same for the name alone, beside a search.
    ScriptOfName,
    /// A form that is sent by GET.
    Get,
    /// A form whose button sends it by GET.
    GetButton,
}

const WAYS: [Way; 12] = [
    Way::LeadsOn,
    Way::PostsItself,
    Way::Unauthorized,
    Way::Based,
    Way::OnPaths,
    Way::FormPost,
    Way::FormPostByHand,
    Way::LeadsBack,
    Way::FarRound,
    Way::ManyPages,
    Way::GetQuestion,
    Way::ScriptAndForm,
];

impl Way {
    /// What comes in place of the sign-in page, of which the form is `form`: status, headers and page.
    pub fn sign_in(self, form: &str, flow: &str, url: &str) -> Option<(u16, Vec<String>, String)> {
        Some(match self {
            Way::LeadsOn => {
                (200, vec![], format!(r#"<meta http-equiv="refresh" content="0;url=/form?flow={}">"#, twice(flow)))
            }
            Way::PostsItself => {
                let hidden = format!(r#"<input type="hidden" name="flow" value="{}">"#, flow.replace('&', "&amp;"));
                let send = "document.forms[0].submit()";
                (200, vec![], format!(r#"<body onload="{send}"><form method="post" action="/form">{hidden}</form>"#))
            }
            Way::Unauthorized => (401, vec![], form.to_owned()),
            Way::Based => (200, vec![], format!(r#"<base href="{url}/login">{}"#, form.replace("login?", "?"))),
            Way::ScriptAndForm => {
                let own = "<form><input name=login><input type=password name=password><button>Sign in</button></form>";
                (200, vec![], format!("{own}{form}<script src=/in.js></script>"))
            }
            Way::Script => (200, vec![], form.replace(r#" method="post""#, "") + "<script>f.onsubmit=x</script>"),
            Way::ScriptOfName => {
                let name =
                    r#"<title>Sign in</title><form><input type="email" name="login"><button>Next</button></form>"#;
                (
                    200,
                    vec![],
                    format!(r#"<form action="/search"><input name="q"></form>{name}<script src=/in.js></script>"#),
                )
            }
            Way::Get => (200, vec![], form.replace(r#"method="post""#, "method=get")),
            Way::GetButton => (200, vec![], form.replace("<button>", "<button formmethod=get>")),
            Way::OnPaths => {
                let cookies =
                    ["Set-Cookie: way=1; Path=/login".to_owned(), "Set-Cookie: way=; Path=/x; Max-Age=0".to_owned()];
                (200, cookies.to_vec(), form.to_owned())
            }
            _ => return None,
        })
    }

    /// What comes in place of the redirect with the response: status, headers and page. `step` counts what came before.
    pub fn arrive(self, query: &str, step: u32) -> Option<(u16, Vec<String>, String)> {
        let hidden: String = form_urlencoded::parse(query.as_bytes())
            .map(|(name, value)| format!(r#"<input type="hidden" name="{name}" value="{value}">"#))
            .collect();
        let uri = URI;
        let on = |step: u32| format!("/way?step={step}&q={}", twice(query));
        Some(match self {
            Way::FormPost => {
                let send = "<script>document.forms[0].submit()</script>";
                (200, vec![], format!(r#"<form method="post" action="{uri}">{hidden}</form>{send}"#))
            }
            Way::FormPostByHand => {
                let send = r#"<script src="/send.js"></script><button>Continue</button>"#;
                (200, vec![], format!(r#"<form method="post" action="{uri}">{hidden}{send}</form>"#))
            }
            Way::LeadsBack => {
                let to = format!("{uri}?{query}").replace('&', "&amp;");
                (200, vec![], format!(r#"<title>Done</title><meta http-equiv="refresh" content="0; url='{to}'">"#))
            }
            Way::FarRound if step < 15 => (302, vec![format!("Location: {}", on(step + 1))], String::new()),
            Way::ManyPages if step < 5 => {
                (200, vec![], format!(r#"<form method="post" action="{}"><button>Next</button></form>"#, on(step + 1)))
            }
            Way::GetQuestion if step < 1 => {
                let values = format!(
                    r#"<input name="step" type="hidden" value="1"><input name="q" type="hidden" value="{}">"#,
                    { query.replace('&', "&amp;") }
                );
                let buttons = r#"<button name="d" value="0">Deny</button><button name="d" value="1">Allow</button>"#;
                (200, vec![], format!(r#"<form action="/way?lost=1">{values}{buttons}</form>"#))
            }
            _ => return None,
        })
    }
}

/// What is encoded already, to travel as one value.
fn twice(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Red without: `leads_to` and `posts_itself` in `onward`, `asks` in `follow`, `base` in `resolve`, `is_on` in the jar, `sent`'s
/// first lines, `back` in `onward`, 20 redirects, 8 pages, and the forms sent by GET in `question`: each one way.
#[test]
fn every_way_leads_to_a_code() {
    for way in WAYS {
        is_clean(&measured(Manner::Strange(way), Workload::Flow).0, 4);
    }
}

#[test]
fn a_password_on_a_page_of_its_own_is_typed_there() {
    // Red without `name` in `follow`: a page for the name with an error status was a failure.
    for manner in [Manner::Apart, Manner::ApartUnauthorized] {
        let (report, provider) = measured(manner, Workload::Flow);
        is_clean(&report, 4);
        assert!(provider.seen("/name") > 0 && provider.logins().len() > 1, "and the name came along");
        assert_eq!(provider.seen("/register"), 0);
    }
}

#[test]
fn a_page_that_leads_to_another_machine_is_not_followed() {
    // Red without the check of reach in the wire, which every way goes through, and without `astray`, which names it.
    let provider = Provider::start(Manner::Astray);
    let refusal = run(&plan(&provider.url, Workload::Flow), None).unwrap_err().to_string();
    let expected =
        "the first iteration failed: authorize: led to http://example.com: only this machine may be measured";
    assert!(refusal.starts_with(expected), "{refusal}");
}

/// Red without `is_secret` in `sent`: the password stood in the address that the page named, and in the log behind it.
#[test]
fn no_password_is_put_into_an_address() {
    let script = "a script sends the sign-in form, and none is run here (Sign in)";
    let by_get = "the sign-in form is sent by GET, and no password is put into an address (Sign in)";
    for (way, step, why) in [
        (Way::Script, "login", script),
        (Way::ScriptOfName, "authorize", script),
        (Way::Get, "login", by_get),
        (Way::GetButton, "login", by_get),
    ] {
        let provider = Provider::start(Manner::Strange(way));
        let line = refused(&plan(&provider.url, Workload::Flow));
        assert_eq!(line, format!("the first iteration failed: {step}: {why}"), "{way:?}");
        assert_eq!(provider.seen("/login"), 0, "{way:?}");
    }
}

/// Red without `refresh_if_asked` and what it leaves out of `steps`.
#[test]
fn who_gets_no_refresh_token_is_told_and_may_go_without() {
    let provider = Provider::start(Manner::Once);
    let line = refused(&plan(&provider.url, Workload::Flow));
    assert!(line.contains("no refresh token") && line.ends_with("or go without (w1 --no-refresh)"), "{line}");
    let without = |url: &str| Plan { without_refresh: true, ..plan(url, Workload::Flow) };
    let (report, _) = measured_until(Manner::Once, without, is_lively);
    is_clean(&report, 4);
    assert_eq!((report.workload.as_str(), report.steps.len()), ("w1, without refresh", 4));
    let line = refused(&plan(&provider.url, Workload::Refresh));
    assert!(line.contains("no refresh token") && !line.contains("--no-refresh"), "{line}");
}
