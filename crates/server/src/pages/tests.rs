//! Properties of every page.

use super::samples::{Sample, all};
use super::*;

const HOSTILE: &str = "\"><svg onload=1>'{{7*7}}";
const LIMIT: usize = 50 * 1024;

fn benign() -> Vec<Sample> {
    Language::ALL.into_iter().flat_map(|language| all(language, |text| text)).collect()
}

/// Returns the attributes of every tag in `html`, as name and value, in order.
fn attributes(html: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for tag in html.split('<').skip(1) {
        let mut rest = tag.trim_start_matches(|c: char| !c.is_whitespace() && c != '>');
        while let Some(equals) = rest.find("=\"").filter(|at| rest.find('>').is_none_or(|end| *at < end)) {
            let name = rest[..equals].rsplit(char::is_whitespace).next().unwrap().to_ascii_lowercase();
            let value = &rest[equals + 2..];
            let end = value.find('"').expect("an attribute value ends");
            found.push((name, value[..end].to_owned()));
            rest = &value[end + 1..];
        }
    }
    found
}

#[test]
fn xs_01_no_text_becomes_markup() {
    for language in Language::ALL {
        for page in all(language, |_| HOSTILE) {
            assert!(!page.html.contains("<svg onload"), "{}", page.name);
            assert!(page.html.contains("&#60;svg onload=1&#62;"), "{}: the text is shown, as text", page.name);
            assert!(!page.html.contains("'{{7"), "{}: a quote is left as it is", page.name);
            for (name, value) in attributes(&page.html) {
                assert!(!name.starts_with("on") && name != "style", "{}: {name}={value}", page.name);
            }
        }
    }
}

/// A name that users may have: written from right to left, with a picture of several characters, and wide.
const UNRULY: &str = "\u{5d0}\u{5d3}\u{5d4} (\u{1f469}\u{200d}\u{1f467}) WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW";

/// Replaces every name with it.
fn unruly(text: &'static str) -> &'static str {
    let is_name = ["ada", "Ada Lovelace", "Field Notes", "Living Room TV"].contains(&text);
    if is_name { UNRULY } else { text }
}

/// Red without `bdi` in a template, or `isolated` in a title: a name that is written from right to left would reverse
/// the text next to it.
#[test]
fn a_name_keeps_its_direction_to_itself() {
    for page in all(Language::English, unruly) {
        let mut before = String::new();
        for part in page.html.split(UNRULY) {
            let is_attribute = before.rfind('<') > before.rfind('>');
            let is_apart = before.ends_with("<bdi>") || before.ends_with('\u{2068}');
            assert!(before.is_empty() || is_attribute || is_apart, "{}: before a name: {before}", page.name);
            before = part.to_owned();
        }
    }
}

/// Red where only the mistake describes the address: the hint says what to do.
#[test]
fn an_address_that_is_kept_says_beside_its_field_how_to_change_it() {
    let pages = all(Language::English, |text| text);
    let page = pages.iter().find(|page| page.name == "account_kept").unwrap();
    assert!(page.html.contains("aria-describedby=\"email-wrong email-kept\""), "{}", page.html);
}

#[test]
fn how_to_connect_an_application_is_shown_to_who_may_run_the_server() {
    for page in all(Language::English, |text| text).iter().filter(|page| page.name.starts_with("home")) {
        assert_eq!(page.html.contains("portiere client add"), page.name != "home", "{}", page.name);
    }
}

/// Red where it stands below the buttons: whoever hears the page has answered by then.
#[test]
fn a_consent_page_says_where_it_leads_before_it_is_answered() {
    let pages = all(Language::English, |text| text);
    let page = pages.iter().find(|page| page.name == "consent").unwrap();
    let at = |text| page.html.find(text).unwrap();
    assert!(at("https://notes.example.org</bdi>") < at("name=\"decision\""), "{}", page.html);
}

/// Red with one label for all: "Sign out everywhere else" beside "You are signed in nowhere else".
#[test]
fn signing_out_elsewhere_is_offered_to_who_is_signed_in_elsewhere() {
    for page in all(Language::English, |text| text).iter().filter(|page| page.html.contains("sessions/revoke-others")) {
        let nowhere = page.html.contains("You are signed in nowhere else.");
        let offered = [page.html.contains("Sign out everywhere else"), page.html.contains("End access of all")];
        assert_eq!(offered, [!nowhere, nowhere], "{}", page.name);
    }
}

/// Red where a page says "try again", or nothing, and a person who came there by a link is left with the browser's own
/// buttons. RFC 9700 §4.11.2: where the application is not known, nothing leads on.
#[test]
fn an_error_page_has_a_way_on_unless_only_an_operator_can_help() {
    let for_operators = ["error_local", "error_unknown_client"];
    let is_error = |name: &str| ["error", "busy", "away", "throttled"].iter().any(|kind| name.starts_with(kind));
    for page in benign().iter().filter(|page| is_error(page.name)) {
        let main = page.html.split_once("<main").unwrap().1;
        let leads_on = main.contains("<a ") || main.contains("<button");
        assert_eq!(leads_on, !for_operators.contains(&page.name), "{}", page.name);
    }
}

#[test]
fn xs_02_a_script_url_is_never_a_target() {
    let chrome =
        Chrome { language: Language::English, brand: Brand { name: "P" }, nonce: "n", base: "", signed_in: None };
    for url in
        ["javascript:alert(1)", "JaVaScript:alert(1)", " java\tscript:alert(1)", "data:text/html,x", "vbscript:x"]
    {
        let post = FormPostPage { action: url, client: "C", fields: &[] }.render(&chrome);
        let signed_out =
            SignedOutPage { back: Some(Back { name: "C", url, posted: &[] }), detail: None }.render(&chrome);
        for (name, value) in attributes(&(post + &signed_out)) {
            assert!(!(name == "href" || name == "action") || !value.contains(':'), "{name}={value}");
        }
    }
    let native =
        SignedOutPage { back: Some(Back { name: "C", url: "org.example.notes:/bye", posted: &[] }), detail: None }
            .render(&chrome);
    assert!(native.contains("href=\"org.example.notes:/bye\""));
}

#[test]
fn every_page_is_small() {
    for page in benign() {
        assert!(page.html.len() < LIMIT, "{} has {} bytes", page.name, page.html.len());
    }
    for asset in assets() {
        assert!(asset.bytes.len() < LIMIT, "{}", asset.path);
    }
}

#[test]
fn no_page_needs_anything_inline_or_foreign() {
    for page in benign() {
        let html = &page.html;
        assert_eq!(html.matches("<script").count(), html.matches("<script src=\"/assets/").count(), "{}", page.name);
        assert_eq!(html.matches("<script").count() + 1, html.matches("nonce=\"r4nd0mNonce\"").count(), "{}", page.name);
        assert!(!html.contains("<style") && !html.contains("<base") && !html.contains("<iframe"), "{}", page.name);
        for (name, value) in attributes(html) {
            assert!(name != "style" && !name.starts_with("on"), "{}: {name}", page.name);
            let foreign = value.starts_with("http") || value.starts_with("//");
            let ours = value.starts_with("http://localhost:8080") || value.starts_with("https://notes.example.org/");
            assert!(name != "src" || !foreign, "{}: {value}", page.name);
            assert!(!foreign || ours, "{}: {name}={value}", page.name);
        }
    }
}

#[test]
fn every_asset_that_a_page_names_is_served() {
    for page in benign() {
        for (_, value) in attributes(&page.html).into_iter().filter(|(_, value)| value.contains("/assets/")) {
            assert!(assets().iter().any(|asset| asset.path == value), "{}: {value}", page.name);
        }
    }
}

#[test]
fn no_script_writes_markup() {
    for asset in assets().iter().filter(|asset| asset.content_type.starts_with("text/javascript")) {
        let text = std::str::from_utf8(asset.bytes).unwrap();
        for sink in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "setAttribute(\"on",
        ] {
            assert!(!text.contains(sink), "{}: {sink}", asset.path);
        }
    }
}

#[test]
fn every_page_says_its_language_and_has_one_heading_and_one_main() {
    for language in Language::ALL {
        for page in all(language, |text| text) {
            assert!(page.html.contains(&format!("<html lang=\"{}\">", language.tag())), "{}", page.name);
            assert_eq!(page.html.matches("<h1").count(), 1, "{}", page.name);
            assert_eq!(page.html.matches("<main").count(), 1, "{}", page.name);
            assert!(!page.html.contains('…'), "{}: a message is missing", page.name);
        }
    }
}

#[test]
fn every_id_is_unique_and_every_reference_has_its_target() {
    for page in benign() {
        let attributes = attributes(&page.html);
        let ids: Vec<_> = attributes.iter().filter(|(name, _)| name == "id").map(|(_, value)| value.as_str()).collect();
        for id in &ids {
            assert_eq!(ids.iter().filter(|other| other == &id).count(), 1, "{}: {id}", page.name);
        }
        let referring = ["for", "aria-describedby", "aria-labelledby"];
        for (name, value) in attributes.iter().filter(|(name, _)| referring.contains(&name.as_str())) {
            for target in value.split(' ') {
                assert!(ids.contains(&target), "{}: {name}={target}", page.name);
            }
        }
        for (_, value) in attributes.iter().filter(|(name, value)| name == "href" && value.starts_with('#')) {
            assert!(ids.contains(&&value[1..]), "{}: {value}", page.name);
        }
    }
}

#[test]
fn every_message_key_in_a_template_exists() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
    let english = messages::Messages::of(Language::English);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for call in ["say(\"", "with(\"", "isolated(\"", "around(\""] {
            for rest in text.split(call).skip(1) {
                let key = rest.split('"').next().unwrap();
                assert!(english.find(key).is_some(), "{}: {key}", path.display());
            }
        }
    }
}

#[test]
fn a_realm_under_a_path_keeps_its_links_there() {
    let chrome = Chrome {
        language: Language::English,
        brand: Brand { name: "P" },
        nonce: "n",
        base: "/realms/two",
        signed_in: None,
    };
    let page = LoginPage {
        flow: "f",
        client: None,
        device: false,
        login: "",
        again: false,
        already: Some("ada"),
        problem: None,
        sign_up: Some("/signup"),
    };
    for (name, value) in attributes(&page.render(&chrome)) {
        if ["href", "src", "action"].contains(&name.as_str()) {
            assert!(value.starts_with("/realms/two/"), "{name}={value}");
        }
    }
}

/// Red where `BusyPage::text` has one text for all: what was sent is kept except for passwords, as its form says.
#[test]
fn whoever_sent_a_form_is_not_told_that_nothing_is_lost() {
    let pages = all(Language::English, |text| text);
    for page in pages.iter().filter(|page| page.name.starts_with("busy")) {
        assert_eq!(page.html.contains("Nothing is lost."), page.name == "busy", "{}", page.name);
    }
}

#[test]
fn a_password_is_never_sent_back_and_the_login_is() {
    let pages = all(Language::English, |text| text);
    let busy = pages.iter().find(|page| page.name == "login_busy").unwrap();
    assert!(busy.html.contains("value=\"ada@example.org\""));
    for page in &pages {
        for input in page.html.split("<input").skip(1).map(|rest| rest.split('>').next().unwrap()) {
            assert!(!input.contains("type=\"password\"") || !input.contains(" value="), "{}", page.name);
        }
    }
}

/// With PAGES_DIR set, writes every page and asset there, to be viewed in a browser.
#[test]
#[allow(clippy::disallowed_methods, reason = "the folder is chosen by whoever runs this test, not by an operator")]
fn sample_pages_can_be_written() {
    let Some(folder) = std::env::var_os("PAGES_DIR").map(std::path::PathBuf::from) else { return };
    for asset in assets() {
        let path = folder.join(&asset.path[1..]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, asset.bytes).unwrap();
    }
    for language in Language::ALL {
        let folder = folder.join(language.tag());
        std::fs::create_dir_all(&folder).unwrap();
        for page in all(language, |text| text) {
            std::fs::write(folder.join(format!("{}.html", page.name)), page.html).unwrap();
        }
    }
    let folder = folder.join("unruly");
    std::fs::create_dir_all(&folder).unwrap();
    for page in all(Language::English, unruly) {
        std::fs::write(folder.join(format!("{}.html", page.name)), page.html).unwrap();
    }
}
