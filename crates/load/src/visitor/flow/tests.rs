//! Answers pages after the password.

use super::*;

#[test]
fn the_challenge_is_the_one_of_rfc_7636_appendix_b() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
    let errand = Errand { verifier, state: String::new(), nonce: String::new() };
    assert_eq!(errand.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

#[test]
fn errands_differ_and_verifiers_are_long_enough() {
    let rng = &mut fastrand::Rng::new();
    let (one, other) = (Errand::new(rng), Errand::new(rng));
    assert!(one.verifier != other.verifier && one.state != other.state && one.verifier != one.state);
    assert_eq!(one.verifier.len(), 43);
}

#[test]
fn a_sign_in_page_that_comes_back_is_no_consent() {
    let page = "<title>Sign in</title><form method=post><input name=a><input type=password name=b></form>";
    // Red without the login: it may be any user of a file.
    let consent = |text: &str| consent(&Page::of(text), "ann", &[]);
    let setback = consent(page).unwrap_err();
    assert_eq!(
        setback.to_string(),
        "login: the sign-in page came back (Sign in) to ann: wrong login or password, or the account may not sign in"
    );
    let page = page.replace("name=b", "name=b autocomplete=new-password");
    for page in [&page, &format!("{page}</form><form method=post><input type=email name=news>")] {
        assert_eq!(consent(page).unwrap_err().to_string(), "login: a new password is asked for (Sign in) of ann");
    }
    let page = "<title>Sign in</title><form method=post><input name=login required>\
                <input type=password name=b required>\
                <input name=tenant required><input type=checkbox name=terms required><select name=realm required>\
                <option value=''>Choose</select><input name=note><input type=hidden name=h required></form>";
    let setback = consent(page).unwrap_err().to_string();
    let left = "not sign in; it also requires \"tenant\", \"terms\", \"realm\", which was left empty";
    assert!(setback.ends_with(left), "{setback}");
    assert!(consent("<form action=/search><input name=q></form>").is_err());
    assert!(consent("<form method=post action=/consent><button>Allow</button></form>").is_ok());
}

/// Red without `typed`: a wrong password was a new password that is asked for.
#[test]
fn a_form_that_was_filled_in_before_asks_for_no_new_password() {
    let page = "<title>T</title><form method=post><input type=hidden name=csrf value=2><input name=u>\
                <input type=password name=p autocomplete=new-password></form>";
    let of = |typed: &[&str]| {
        let typed: Vec<_> = typed.iter().map(|name| (*name).to_owned()).collect();
        consent(&Page::of(page), "ann", &typed).unwrap_err().to_string()
    };
    assert!(of(&["u", "p"]).starts_with("login: the sign-in page came back (T) to ann: wrong login or password"));
    assert_eq!(of(&["login", "p"]), "login: a new password is asked for (T) of ann");
}

/// Red where whatever form is there is sent: people without access were signed out, and that page was the failure.
#[test]
fn a_page_that_offers_only_a_no_is_not_agreed_to() {
    let page =
        "<title>Access denied</title><p>You are not assigned.</p><form method=post><button>Sign out</button></form>";
    let expected = "login: a page with nothing to agree to (Access denied: You are not assigned.) for ann";
    assert_eq!(consent(&Page::of(page), "ann", &[]).unwrap_err().to_string(), expected);
}

/// Red without `did`: one could not see whether the server was at fault or a wrong button was pressed.
#[test]
fn who_is_sent_back_says_what_was_pressed() {
    let sent_back = || Step::Login.wrong(format!("{SENT_BACK}access_denied: user said no"));
    let page = "<form method=post><input type=radio name=d value=1 id=a><label for=a>Ei tea</label>\
                <button>Jah</button></form>";
    let filled = consent(&Page::of(page), "ann", &[]).unwrap();
    let told = after(sent_back(), &filled.did).to_string();
    let expected =
        "login: redirected with error access_denied: user said no, after \"Ei tea\" was chosen and \"Jah\" was pressed";
    assert_eq!(told, expected);
    assert_eq!(after(sent_back(), ""), sent_back());
    assert_eq!(after(Step::Login.wrong("500"), &filled.did), Step::Login.wrong("500"));
}

/// Red without `is_code`: the page was answered with nothing until there were too many pages.
#[test]
fn a_second_factor_is_called_one() {
    let expected = "login: a one-time code is asked for (T) of ann, and there is none to give: use accounts without \
                    a second factor";
    for field in [
        "<input name=a autocomplete=one-time-code>",
        "<input name=otp>",
        "<input type=password autocomplete=one-time-code name=p>",
        "<input type=number id=Two-Factor_Code name=x>",
        "<input type=tel name=code maxlength=6>",
    ] {
        let page = Page::of(&format!("<title>T</title><form method=post>{field}<button>Verify</button></form>"));
        assert_eq!(consent(&page, "ann", &[]).unwrap_err().to_string(), expected, "{field}");
    }
    for field in ["<input type=hidden name=code value=1>", "<input name=footprint>", "<input type=checkbox name=pin>"] {
        assert!(consent(&Page::of(&format!("<form method=post>{field}</form>")), "ann", &[]).is_ok(), "{field}");
    }
    let page = "<title>T</title><form method=post><input name=phone><input name=h hidden></form>";
    assert_eq!(asked(&Page::of(page)), "T, which asks for \"phone\"");
    // Beside a password it is not a second password, which would be a new one.
    let page = Page::of("<form method=post><input name=u><input type=password name=p><input type=password name=otp>");
    assert_eq!(page.sign_in().map(|form| form.sign_in("ann", "pw").body).as_deref(), Some("u=ann&p=pw&otp="));
}
