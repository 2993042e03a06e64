//! Reads pages like those of real providers.

use super::*;

fn form(page: &str) -> Form {
    Page::of(page).forms.swap_remove(0)
}

#[test]
fn the_title_names_the_page() {
    let named = |text: &str| Page::of(text).name();
    assert_eq!(named("<html><head><title> Sign in &amp; go </title></head>"), "Sign in & go");
    assert_eq!((named("<p>none"), named("<title></title>")), ("no title".to_owned(), "no title".to_owned()));
}

#[test]
fn forms_do_not_share_fields() {
    let found = Page::of("<form action=a><input name=x></form><input name=lost><form action=b><input name=y>").forms;
    let bodies: Vec<_> = found.iter().map(|form| form.approve().body).collect();
    assert_eq!(bodies, ["x=", "y="]);
    assert!(found.iter().all(|form| form.approve().get));
}

#[test]
fn the_question_of_a_page_is_the_form_that_says_yes_to_it() {
    let asked = |text: &str| Page::of(text).question().map(|form| form.approve().action);
    let page = "<form action=/search><input name=q><button>Continue</button></form>\
                <form method=post action=/other><button name=choice value=other>Not you?</button></form>\
                <form method=post action=/yes><button name=d value=deny>Deny</button><button>Allow</button></form>\
                <form method=post action=/language><button>Deutsch</button></form>";
    assert_eq!(asked(page).as_deref(), Some("/yes"));
    let unclear = "<form method=post action=/first><button>Weiter</button></form>\
                   <form method=post action=/second><button>Altro</button></form>";
    assert_eq!(asked(unclear).as_deref(), Some("/first"));
    assert_eq!(asked("<form action=/search><input name=q></form>"), None);
    // Red without the second part of `question`: a consent form that is no more than a link.
    assert_eq!(asked("<form action=/search><input name=q></form><form action=/ok><button>Yes").as_deref(), Some("/ok"));
}

/// Red where the first of forms with unclear buttons is answered, and without `asks_consent`.
#[test]
fn what_else_is_on_a_page_is_not_its_question() {
    let asked = |text: &str| Page::of(text).question().map(|form| form.approve().action);
    let consent = |button: &str| {
        format!(
            "<form method=post action=/yes><input type=hidden name=f value=1><button name=d>{button}</button></form>"
        )
    };
    for (other, button) in [
        ("<select name=l><option>en<option>de</select><button>Go</button>", "Submit"),
        ("<input name=q><button>OK</button>", "OK"),
        ("<input type=search name=q><button>Search</button>", "OK"),
        ("<input type=hidden name=t><button>Log out</button>", "Submit"),
        ("<button name=c value=all>Accept all</button>", "Allow"),
        ("<button name=c value=all>Accept all</button>", "Submit Consent"),
        ("<button name=c value=all>Accept all</button>", "Submit"),
        ("<button name=c value=all>Accept all cookies</button>", "Submit"),
        ("<button>Continue</button>", "Not now"),
    ] {
        let other = format!("<form method=post action=/other>{other}</form>");
        for page in [format!("{other}{}", consent(button)), format!("{}{other}", consent(button))] {
            assert_eq!(asked(&page).as_deref(), Some("/yes"), "{page}");
        }
    }
    let out = "<form method=post action=/out><button>Log out</button></form>";
    assert_eq!(asked(&format!("{out}<form action=/ok><button>Continue</button></form>")).as_deref(), Some("/ok"));
}

/// Some pages show the password while it is typed.
#[test]
fn a_line_of_text_that_is_called_a_password_is_one() {
    for line in
        ["<input name=password>", "<input type=text name=p autocomplete=current-password>", "<input id=Passwd name=b>"]
    {
        let page = Page::of(&format!("<form method=post><input name=user>{line}</form>"));
        let form = page.sign_in().unwrap_or_else(|| panic!("{line}"));
        assert!(form.sign_in("ada", "secret").body.ends_with("=secret"), "{line}");
    }
    let page = Page::of("<form method=post><input name=user><input name=password_hint></form>");
    assert!(page.sign_in().is_none());
}

#[test]
fn a_page_that_nobody_expected_is_told_by_its_title_and_how_its_text_goes_on() {
    for (page, said) in [
        (
            "<title>Sign in</title><script>x</script><h1>We are sorry</h1>\n<p>Client&nbsp;not <b>found</b>.",
            "Sign in: We are sorry Client\u{a0}not found .",
        ),
        ("<title>Oops</title><p>Oops</p>", "Oops"),
        ("unable to retrieve client by id", "unable to retrieve client by id"),
        ("<title>Not found</title><p>Nothing is here.<p>Request 5f0c21aa", "Not found: Nothing is here. Request"),
        ("", ""),
    ] {
        assert_eq!(Page::of(page).said(), said, "{page}");
    }
    assert!(Page::of(&"word ".repeat(10_000)).text.len() < 200);
}

/// Red without `is_for_newcomers`: on a page with both forms the first is not always the right one.
#[test]
fn the_form_to_sign_in_with_is_not_the_one_that_makes_an_account() {
    let login = "<form method=post action=/in><input name=u><input type=password name=p><button>Log in</button></form>";
    for other in [
        "<input name=u><input type=password name=a><input type=password name=b>",
        "<input name=u><input type=password name=a autocomplete=new-password>",
        "<input name=u><input type=password name=a><button>Create account</button>",
        "<input name=u><input type=password name=a><input type=submit value='Sign up'>",
    ] {
        for page in [format!("<form method=post action=/new>{other}</form>{login}"), format!("{login}<form>{other}")] {
            assert_eq!(Page::of(&page).sign_in().unwrap().approve().action, "/in", "{page}");
        }
    }
}

/// Red without `elsewhere`: in a sign-in of two pages only the second asks for a password, and the first may offer an
/// account.
#[test]
fn a_password_is_not_sent_to_the_form_for_newcomers_beside_that_for_the_name() {
    let name = "<form method=post action=/name><input name=login><button>Next</button></form>";
    let new =
        "<form method=post action=/register><input name=u><input type=password name=p><button>Register</button></form>";
    for page in [format!("{name}{new}"), format!("{new}{name}")].map(|page| Page::of(&page)) {
        assert!(page.sign_in().is_none() && page.posts_itself().is_none());
        assert_eq!(page.introduction().unwrap().action(), "/name");
        assert_eq!(page.asks_password().unwrap().action(), "/register");
    }
    let both = Page::of(&format!("{new}{name}<form method=post action=/in><input name=u><input type=password name=p>"));
    assert_eq!(both.sign_in().unwrap().action(), "/in", "with all three");
}

/// Red without `Choice` and `Open::Area`: browsers send these as they stand.
#[test]
fn lists_and_areas_are_sent_as_they_stand() {
    let page = "<form><select name=a><option value=1>One<option value=2 selected>Two</select>\
                <select name=b><option disabled value=''>Choose</option><option>First &amp; one</option><option>2</select>\
                <select name=none></select><select name=off disabled><option>x</select>\
                <textarea name=t>hi &lt;you&gt;</textarea><textarea name=u disabled>no</textarea></form>";
    assert_eq!(form(page).sign_in("", "").body, "a=2&b=First+%26+one&t=hi+%3Cyou%3E");
}

/// Red where the first entry is sent if none is selected, or one of several.
#[test]
fn a_list_of_several_sends_what_is_selected() {
    let sent = |options: &str| form(&format!("<form><select multiple name=m>{options}</select></form>")).approve().body;
    assert_eq!(sent("<option value=1>One<option value=2>Two"), "");
    assert_eq!(sent("<option value=1 selected>One<option value=2>Two<option value=3 selected>Three"), "m=1&m=3");
}

/// Red without `typed`: spaces around a text belong to it, and a server may compare it with what it sent.
#[test]
fn the_lines_of_an_area_are_sent_as_browsers_send_them() {
    let sent = |text: &str| form(&format!("<form><textarea name=t>{text}</textarea></form>")).sign_in("", "").body;
    for text in ["\na\nb ", "\r\na\r\nb ", "a\rb ", "&#10;a&#13;&#10;b "] {
        assert_eq!(sent(text), "t=a%0D%0Ab+", "{text:?}");
    }
    assert_eq!((sent("\n\na").as_str(), sent("\n").as_str(), sent("").as_str()), ("t=%0D%0Aa", "t=", "t="));
}

/// Red where a form ends at the next start tag: its own address and fields were lost.
#[test]
fn a_form_within_a_form_is_no_form() {
    let page = "<form method=post action=/in><input name=u><form action=/search><input type=password name=p></form>\
                <input name=lost><form action=/next><input name=q></form>";
    let page = Page::of(page);
    assert_eq!(page.forms.iter().map(Form::action).collect::<Vec<_>>(), ["/in", "/next"]);
    assert_eq!(page.sign_in().unwrap().sign_in("ann", "pw").body, "u=ann&p=pw");
}

/// Red without `strays`.
#[test]
fn parts_outside_of_their_form_belong_to_it_all_the_same() {
    let page = "<input form=f name=u><form id=g><input type=password form=f name=p><input name=x></form>\
                <form id=f method=post action=/in></form><button form=f name=go value=1>Log in</button>\
                <input form=nowhere name=y>";
    let page = Page::of(page);
    let filled = page.sign_in().unwrap().sign_in("ann", "pw");
    assert_eq!((filled.action.as_str(), filled.body.as_str()), ("/in", "u=ann&p=pw&go=1"));
    assert_eq!(page.forms[0].approve().body, "x=");
}

#[test]
fn a_page_leads_on_by_itself_only_soon_and_only_where_nobody_is_asked() {
    let leads = |content: &str, rest: &str| {
        let page = Page::of(&format!(r#"<base href="/b/"><meta http-equiv="Refresh" content="{content}">{rest}"#));
        assert_eq!(page.base.as_deref(), Some("/b/"));
        page.leads_to().map(str::to_owned)
    };
    for content in ["0;url=/x?a&amp;b", "0; URL='/x?a&amp;b'", " 3 , url = /x?a&amp;b", "0;/x?a&amp;b"] {
        assert_eq!(leads(content, "").as_deref(), Some("/x?a&b"), "{content}");
    }
    for content in ["5", "0;", "0;url=", "1800;url=/timeout", "-1;url=/x", "soon;url=/x", "NaN;url=/x", ""] {
        assert_eq!(leads(content, ""), None, "{content}");
    }
    assert_eq!(leads("0;url=/x", "<form><input type=password name=p></form>"), None);
}

#[test]
fn a_page_that_asks_nothing_says_why() {
    let why = |text: &str| Page::of(text).asks_nothing();
    assert!(why("<title>flow</title><div></div><SCRIPT src=a.js></SCRIPT>").starts_with("a script draws"));
    // Red without `told`: only a title was named, and such a page has none.
    let no_form = "no form is on the page: does a way to sign in have to be chosen first? ";
    assert_eq!(
        why("<h3>Client ID Error</h3><p>It is missing.</p>"),
        format!("{no_form}(Client ID Error It is missing.)")
    );
    assert_eq!(why("<a href=/google></a>"), format!("{no_form}(no title)"));
    assert_eq!(why("<title>T</title><form><input name=q></form><script></script>"), "no form asks a password (T)");
}

/// Red without `unseen`: what nobody sees was quoted as what the page says.
#[test]
fn what_is_not_shown_is_not_said() {
    let said = |text: &str| Page::of(text).said();
    assert_eq!(
        said("<div style='Display: none'>a<div>b</div>c<br></div><p hidden>d</p><input hidden>e<b>f</b>"),
        "e f"
    );
    assert_eq!(said("<div style='display:block'>a</div>b"), "a b");
}

#[test]
fn a_page_posts_itself_where_a_script_does_and_nobody_is_asked() {
    let posts = |text: &str| Page::of(text).posts_itself().is_some();
    // Keycloak's sign-in page, if there is another way to sign in: a link sends that form.
    let other = r#"<form id=t method=post action=/t><input type=hidden name=tryAnotherWay value=on>
        <script>document.forms['t'].submit()</script></form>"#;
    let password = r#"<form method=post action=/l><input name=username><input type=password name=password></form>"#;
    assert!(posts(other) && !posts(&format!("{other}{password}")) && !posts(&format!("{password}{other}")));
    let form = "<form method=post action=/x><input type=hidden name=a value=1><input type=submit></form>";
    assert!(posts(&format!("<body onload='document.forms[0].submit()'>{form}")));
    assert!(posts(&format!("{form}<script>document.getElementById('f').submit();</script>")));
    assert!(!posts(form));
    assert!(!posts("<form method=post><input name=code><button>Next</button></form><script>f.submit()</script>"));
}

/// Red where `.submit()` counts anywhere on the page, and without `waits`: a consent was sent without its button, which
/// is neither a yes nor a no.
#[test]
fn a_form_that_waits_for_a_press_does_not_post_itself() {
    let posts = |text: &str| Page::of(text).posts_itself().map(|form| form.action().to_owned());
    let form = |rest: &str| format!("<form method=post action=/x><input type=hidden name=a value=1>{rest}</form>");
    let (script, named) = ("<script>f.submit()</script>", "<button name=d value=1>Allow</button>");
    let handler = "<form action=/lang><select name=l onchange='this.form.submit()'><option>en</select></form>";
    let link = "<a onclick=\"document.forms['t'].submit()\">Try another way</a>";
    for beside in [handler, link] {
        assert_eq!(posts(&format!("{beside}{}", form("<button>Allow</button>"))), None, "{beside}");
    }
    let text = format!("<p>Type f.submit() yourself</p><!-- {script} --><template>{script}</template>");
    assert_eq!(posts(&format!("{text}{}", form(""))), None);
    assert_eq!(posts(&format!("{}{script}", form(named))), None);
    assert_eq!(
        posts(&format!("{}{script}", form("<input type=submit name=d value=Deny><input type=submit name=d>"))),
        None
    );
    assert_eq!(posts(&format!("{}{script}", form("<button>Yes</button><button formaction=/no>No</button>"))), None);
    let beside = form("<button>Log out</button>").replace("/x", "/out");
    assert_eq!(posts(&format!("{beside}{}{script}", form("<button>Allow</button>"))), None);
    // What is only for browsers without scripts replaces the script.
    for rest in
        ["", "<button>Go on</button>", &format!("<noscript><p>Press:</p>{named}<input type=submit name=e></noscript>")]
    {
        assert_eq!(posts(&format!("{}{script}", form(rest))).as_deref(), Some("/x"), "{rest}");
    }
}

#[test]
fn a_page_that_is_cut_off_is_read_as_far_as_it_goes() {
    for text in ["<form><button>", "<form><select name=a><option>x", "<title>", "<form><textarea name=a>", "</form>"] {
        assert!(Page::of(text).forms.len() <= 1, "{text}");
    }
    assert_eq!(Page::of("<title>Cut").name(), "Cut");
}
