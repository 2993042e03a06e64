use super::*;
use crate::oauth::client::tests::confidential;
use crate::oauth::scope::Scope;
use crate::realm::Settings;

fn realm() -> Realm {
    Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() }
}

#[test]
fn a_client_has_no_more_scopes_than_are_read() {
    let of = |count: usize| {
        let scopes = (0..count).fold(Scope::default(), |all, at| all.with(&format!("s{at}")));
        problems(&Client { scope: scopes, ..confidential("c1", "https://app.test/cb") }, None, &realm())
    };
    assert_eq!(of(MOST_SCOPES), [""; 0]);
    assert_eq!(of(MOST_SCOPES + 1), ["at most 100 scopes"]);
}

#[test]
fn a_client_has_no_more_in_a_token_than_is_read_of_one() {
    // Red without `in_a_token`: its tokens would be issued, and refused wherever they are shown.
    let of = |scope: usize, resources: Vec<String>| {
        let scope = Scope::from("s".repeat(scope));
        problems(&Client { scope, resources, ..confidential("c1", "https://app.test/cb") }, None, &realm())
    };
    let uris = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|at| format!("{:x<length$}", format!("https://{at}.test/"))).collect()
    };
    let (long, many) = (
        "scopes and resources may have 8 KiB together, as a token lists them: a longer token would be refused \
         everywhere",
        "at most 100 resources",
    );
    // `["`, `",[`, a pair of quotes for each resource and a comma between two, `]]`.
    assert_eq!(of(8192 - 7, vec![]), [""; 0]);
    assert_eq!(of(8192 - 6, vec![]), [long]);
    assert_eq!(of(8192 - 7 - 4 * 1002 - 3, uris(4, 1000)), [""; 0]);
    assert_eq!(of(8192 - 7 - 4 * 1002 - 2, uris(4, 1000)), [long]);
    assert_eq!(of(10, uris(100, 70)), [""; 0]);
    assert_eq!(of(10, uris(101, 70)), [many]);
    assert_eq!(of(10, uris(20, 920)), [long]);
    let quotes = format!("https://app.test/{}", "\"".repeat(1900));
    assert_eq!(of(10, vec![quotes.clone(), format!("{quotes}1"), format!("{quotes}2")]), [long], "two bytes each");
}

#[test]
fn rfc8725_3_12_a_client_is_not_called_as_what_tokens_are_for() {
    let of =
        |id: &str| problems(&Client { id: id.into(), ..confidential("c1", "https://app.test/cb") }, None, &realm());
    for id in ["https://id.test", "https://id.test/", "https://id.test/api/v1"] {
        let why = "the client id must be neither the issuer nor ISSUER/api/v1: tokens are told apart by it";
        assert_eq!(of(id), [why], "{id}");
    }
    assert_eq!(of("https://id.test/app"), [""; 0]);
    // Its own API may go by the same name: by then it is one party.
    let uri = "https://app.test".to_owned();
    let mut own = Client { id: uri.as_str().into(), ..confidential("c1", "https://app.test/cb") };
    assert!(has_id_tokens_for(&own, &uri) && !has_id_tokens_for(&own, "https://other.test"));
    own.resources = vec![uri.clone()];
    assert!(!has_id_tokens_for(&own, &uri));
    let none = Client { resources: Vec::new(), grants: vec![Grant::ClientCredentials], ..own };
    assert!(!has_id_tokens_for(&none, &uri));
}

#[test]
fn ru_what_could_be_read_in_two_ways_is_not_registered() {
    for uri in [
        "http://app.test/cb",
        "https://app.test/*",
        "https://*.app.test/cb",
        "https://app.test/cb#x",
        "https://app.test/cb,https://other.test/cb",
        "https://user@app.test/cb",
        "https://a@b@evil.test/cb",
        "https://app.test\\@evil.test/cb",
        "https://app.test%40evil.test/cb",
        "https://app.test/cb?code=1",
        "https://app.test/cb?a=1&state=2",
        "https://app.test/cb?%63ode=1",
        "https://app.test/cb?a=1&st%61te=2",
        "https://app.test/%2e%2e/cb",
        "https://app.test/a/.%2E/cb",
        "https://app.test/a/%2e",
        "HTTPS://app.test/cb",
        "https://APP.test/cb",
        "//app.test/cb",
        "/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "https:app.test/cb",
        "https://app.test/../cb",
        "https://app.test:99999/cb",
        "https:///cb",
        "https://app.test/a b",
        "https://äpp.test/cb",
        "http://127.0.0.1.evil.test/cb",
        "http://localhost.evil.test/cb",
        "",
    ] {
        assert!(redirect_problem(uri, false).is_some(), "{uri}");
        assert!(redirect_problem(uri, true).is_some(), "{uri} (native)");
    }
}

#[test]
fn ru_what_only_some_readers_take_for_something_else_is_not_registered() {
    for uri in [
        // For readers that separate by `;`, that ignore case, that trim names, or that read lists.
        "https://app.test/cb?a=1;code=2",
        "https://app.test/cb?Code=1",
        "https://app.test/cb?+code=1",
        "https://app.test/cb?%20code=1",
        "https://app.test/cb?code%5B%5D=1",
        "https://app.test/cb?code[]=1",
        "https://app.test/cb[1]",
        // For readers that stop at a control character, or that leave alone a `%` that begins no escape.
        "https://app.test/cb?code%00=1",
        "https://app.test/cb%0d%0aX:y",
        "https://app.test/cb%7f",
        "https://app.test/cb%",
        "https://app.test/cb%4",
        "https://app.test/cb%zz",
        "https://app.test/cb%+1",
        // For browsers, which read numbers as addresses, and for resolvers.
        "https://127.1/cb",
        "https://2130706433/cb",
        "https://0x7f000001/cb",
        "https://127.0.0.0x1/cb",
        "https://127.0.0.01/cb",
        "https://app.test./cb",
        "https://app..test/cb",
        "https://app-.test/cb",
        "https://app.test:080/cb",
        "https://app.test:0/cb",
        "https://app.test:/cb",
        "com.example.app.:/cb",
        "com..example:/cb",
        // For readers that decode once more, that ignore what follows a `;`, or that decode a separator.
        "https://app.test/cb?%2563ode=1",
        "https://app.test/cb?%252563ode=1",
        "https://app.test/cb?a=1%26code=2",
        "https://app.test/cb?a=1%2526code=2",
        "https://app.test/cb?a=1%3Bcode=2",
        "https://app.test/cb?code%3D1",
        "https://app.test/a/..%2fcb",
        "https://app.test/a/..%5ccb",
        "https://app.test/a/..%5Ccb",
        "https://app.test/a%2Fb",
        "https://app.test/a%252fb",
        "https://app.test/a/%252e%252e/cb",
        "https://app.test/a/..;/cb",
        "https://app.test/a/..;x=1/cb",
        "https://app.test/a/%2e%2e;/cb",
        "https://app.test/a/.;/cb",
        "https://app.test/cb%5c@evil.test",
        // Private schemes, too.
        "com.example.app://user:pw@evil.test/cb",
        "com.example.app://user%40evil.test/cb",
        "com.example.app://h:99999/cb",
        "com.example.app://h:/cb",
        "com.example.app://:80/cb",
        "com.example.app:/a/../../cb",
        "com.example.app:..",
        "com.example.app:/a/..%2fcb",
        "com.example.app:/cb?%2563ode=1",
        "com.example.app:",
        "com.example.app://",
        "com.example.app:?a=1",
    ] {
        assert!(redirect_problem(uri, false).is_some() && redirect_problem(uri, true).is_some(), "{uri}");
    }
}

#[test]
fn what_honest_applications_register_is_accepted() {
    for uri in [
        "https://app.test/cb",
        "https://app.test",
        "https://app.test:8443/cb?tenant=1",
        "https://app.test/a%2eb/cb?a=%63ode",
        "https://app.test/cb?codec=1;b&recode=%C3%A9",
        "https://127.0.0.1/cb",
        "https://0xcafe.test/cb",
        "https://[2001:db8::1]:8443/cb",
        "http://localhost:3000/cb",
        "http://[::1]/cb",
    ] {
        assert_eq!(redirect_problem(uri, false), None, "{uri}");
    }
    for uri in [
        "com.example.app:/cb",
        "com.example.app:cb",
        "com.example.app:///cb",
        "com.example.app://callback",
        "com.example.app://h:8443/a;b/cb?a=1%252",
    ] {
        assert_eq!(redirect_problem(uri, true), None, "{uri}");
    }
    assert!(redirect_problem("com.example.app:/cb", false).is_some());
    assert!(redirect_problem("myapp:/cb", true).is_some());
}

#[test]
fn what_an_earlier_version_registered_stays_and_is_not_registered_again() {
    // red without `stays` in problems: an operator could not even rename such a client.
    let (old, why) = ("https://app.test/a%2fb".to_owned(), "must not have an escaped / or \\ in its path");
    let mut before = confidential("c1", &old);
    before.post_logout_redirect_uris = vec![old.clone()];
    let renamed = Client { name: "Another".into(), ..before.clone() };
    assert_eq!(problems(&renamed, Some(&before), &realm()), [""; 0]);
    let told = [format!("redirect URI {old}: {why}"), format!("post-logout redirect URI {old}: {why}")];
    assert_eq!(problems(&renamed, None, &realm()), told);
    let moved = Client { redirect_uris: vec!["https://app.test/cb".into()], ..before.clone() };
    assert_eq!(problems(&before, Some(&moved), &realm()), told[..1]);
}

#[test]
fn our_own_account_api_is_nobodys_resource() {
    for (uri, fine) in [
        ("https://id.test/api/v1", false),
        ("https://id.test/api/v1/", false),
        ("https://id.test/api/v2", true),
        ("https://api.test/api/v1", true),
    ] {
        let server = Client {
            resource_server: true,
            resources: vec![uri.to_owned()],
            ..confidential("c1", "https://app.test/cb")
        };
        assert_eq!(problems(&server, None, &realm()).is_empty(), fine, "{uri}");
    }
}

#[test]
fn a_name_is_what_people_are_asked_about() {
    // Red without `is_plain` in problems.
    for (name, fine) in [("Shop", true), ("\u{5D7}\u{5E0}\u{5D5}\u{5EA}", true), (" ", false), ("\u{202E}pohS", false)]
    {
        let client = Client { name: name.to_owned(), ..confidential("c1", "https://app.test/cb") };
        assert_eq!(problems(&client, None, &realm()).is_empty(), fine, "{name:?}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let mut client = confidential("bad id", "http://app.test/cb");
    client.secret = None;
    assert_eq!(problems(&client, None, &realm()).len(), 3);
    assert!(problems(&confidential("c1", "https://app.test/cb"), None, &realm()).is_empty());
}
