//! Fills in forms like those of real providers.

use super::*;
use crate::visitor::page::Page;

const LOGIN: &str = r#"<html><head><title> Sign in &amp; go </title></head><body>
    <form action="/search"><input name=q></form>
    <form method='POST' action="/login?flow=a&amp;b=c">
      <input value="t&quot;k" name="csrf" type="hidden">
      <label>Name <input autocomplete=username name='who' type="email"></label>
      <input NAME=secret TYPE=PASSWORD><input type=checkbox name=stay checked><input type=checkbox name=spam>
      <input type=text name=company><button type=button name=show>Show</button>
      <button name=do value=login>Sign in</button></form>"#;

fn forms(page: &str) -> Vec<Form> {
    Page::of(page).forms
}

fn login_form() -> Form {
    forms(LOGIN).into_iter().find(Form::asks_password).unwrap()
}

#[test]
fn the_login_form_is_the_one_that_asks_a_password() {
    let filled = login_form().sign_in("ann@example.com", "p&ss wörd");
    assert_eq!(filled.action, "/login?flow=a&b=c");
    assert!(!filled.get);
    let expected = "csrf=t%22k&who=ann%40example.com&secret=p%26ss+w%C3%B6rd&stay=on&company=&do=login";
    assert_eq!(filled.body, expected);
}

fn pressed(buttons: &str) -> String {
    forms(&format!("<form method=post>{buttons}</form>"))[0].approve().body
}

#[test]
fn the_approving_button_is_pressed_wherever_it_stands() {
    for buttons in [
        "<button name=d value=0>Cancel</button><button name=d value=1>Allow</button>",
        "<button name=d value=1>Allow</button><button name=d value=0>Don&#39;t allow</button>",
        "<input type=submit name=d value=deny><button name=d value=1><b>Yes</b>, go on</button>",
        "<button name=d value=1>Weiter</button><button name=d value=no>Nein</button>",
        "<button name=d value=1>Va bene</button><button name=d value=2>Altro</button>",
        "<button name=d value=0 aria-label=Deny></button><button name=d value=1 aria-label=Allow></button>",
        "<button name=d value=0>No thanks</button><button name=d value=1>Allow access</button>",
        "<button name=d value=0>Abbrechen</button><button name=d value=1>Zustimmen</button>",
        "<button name=d value=0>Rifiuta</button><button name=d value=1>Accetta</button>",
    ] {
        assert_eq!(pressed(buttons), "d=1", "{buttons}");
    }
}

#[test]
fn consent_ticks_every_box_and_follows_the_buttons_own_address() {
    let page = "<form method=post action=/no><input type=hidden name=h value=1><input type=checkbox name=scope \
                value=openid><input type=checkbox name=scope value=email><button formaction=/yes>Accept</button></form>";
    let filled = forms(page)[0].approve();
    assert_eq!((filled.action.as_str(), filled.body.as_str()), ("/yes", "h=1&scope=openid&scope=email"));
}

#[test]
fn of_choices_with_one_name_the_one_that_approves_is_sent() {
    let page = "<form method=post><input type=radio name=d value=deny checked><input type=radio name=d value=allow>\
                <input type=radio name=days value=30><input type=radio name=days value=1 checked><button>Go</button></form>";
    assert_eq!(forms(page)[0].approve().body, "d=allow&days=1");
    assert_eq!(forms(page)[0].sign_in("", "").body, "d=deny&days=1");
}

#[test]
fn a_form_that_asks_who_comes_is_posted_and_asks_no_password() {
    let asks = |page: &str| forms(page)[0].asks_name();
    assert!(asks("<form method=post><input name=login><button>Next</button></form>"));
    assert!(!asks("<form action=/search><input name=q></form>"));
    assert!(!asks(LOGIN) && !login_form().asks_name());
    let next = "<form method=post><input type=hidden name=s value=1><input name=login><button>Next</button></form>";
    assert_eq!(forms(next)[0].sign_in("ann", "secret").body, "s=1&login=ann");
}

/// Red without `enters`: the first button of a form is not always the one that signs in.
#[test]
fn the_button_that_signs_in_is_pressed_wherever_it_stands() {
    for buttons in [
        "<button name=d value=0>Cancel</button><button name=d value=1>Log in</button>",
        "<button name=d value=0>Sign in with Google</button><button name=d value=1>Sign in</button>",
        "<button name=d value=0>Forgot password?</button><input type=submit name=d value=1>",
        "<button name=d value=0>Use a passkey</button><button name=d value=1>Next</button>",
        "<button name=d value=1>Los</button><button name=d value=0>Anders</button>",
        "<button name=d value=0>Sign in with Google</button><button name=d value=1>Sign in with password</button>",
        "<button name=d value=0>Email me a sign-in link</button><button name=d value=1>Sign in with password</button>",
        "<button name=d value=0>Next</button><button name=d value=1>Use my password</button>",
        "<button name=d value=0>Sign in without a password</button><button name=d value=1>Next</button>",
        "<button name=d value=0>Forgot your password?</button><button name=d value=1>Weiter</button>",
        "<button name=d value=0>Reset password</button><button name=d value=1>Sign in with your password</button>",
        "<button name=d value=0 disabled>Log in</button><button name=d value=1>Log in now</button>",
    ] {
        let page = format!("<form method=post>{buttons}<input type=password name=p></form>");
        assert_eq!(forms(&page)[0].sign_in("", "x").body, "p=x&d=1", "{buttons}");
    }
    let by_value = "<form method=post><button name=d value=google>Next</button><button name=d value=password>Go</button>\
                    <input type=password name=p></form>";
    assert_eq!(forms(by_value)[0].sign_in("", "x").body, "p=x&d=password");
    let own = "<form action=/no><input type=password name=p><button formmethod=POST formaction=/yes>Log in</button>";
    let filled = forms(own)[0].sign_in("", "x");
    assert_eq!((filled.action.as_str(), filled.get), ("/yes", false));
}

/// Red without `rank`: an invisible line is a trap for bots, and the first line may ask for something else.
#[test]
fn the_name_goes_where_it_is_asked() {
    for lines in [
        "<input name=website tabindex=-1><input name=a>",
        "<input name=email style='display:none'><input name=a>",
        "<input name=company><input name=a autocomplete='section-x username'>",
        "<input name=company><input type=email name=a>",
        "<input name=a><input name=b>",
        "<input type=search name=q><input id=u name=a autocomplete=email>",
    ] {
        let page = format!("<form method=post>{lines}<input type=password name=p></form>");
        let body = forms(&page)[0].sign_in("ann", "x").body;
        assert!(
            body.contains("=ann") && !body.contains("website=ann") && !body.contains("company=ann"),
            "{lines}: {body}"
        );
        assert!(body.contains("a=ann"), "{lines}: {body}");
    }
}
