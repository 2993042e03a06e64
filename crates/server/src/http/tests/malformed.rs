//! Requests that HTTP/2 libraries accept although they are malformed (RFC 9113 §8.2.1).

use super::*;
use hyper::Version;

#[tokio::test]
async fn a_value_with_white_space_around_it_is_malformed_in_http_2_and_trimmed_before_in_http_1() {
    // Red without is_padded in http/front.rs.
    let house = House::open(&[]).await;
    let status = async |version: Version, value: &str| {
        let peer = Peer { address: "192.0.2.7:4000".parse().unwrap(), tls: true };
        let request = Request::builder().version(version).uri(format!("{ISSUER}/login")).extension(peer);
        let request = request.header("host", "id.example.test").header("accept-language", value);
        house.doors.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    };
    for padded in [" de", "de ", "\tde", "de\t", " ", "\t"] {
        assert_eq!(status(Version::HTTP_2, padded).await, 400, "{padded:?}");
    }
    for sound in ["de", "", "de, en", "de,\ten"] {
        assert_eq!(status(Version::HTTP_2, sound).await, 200, "{sound:?}");
    }
    assert_eq!(status(Version::HTTP_11, " de").await, 200, "what took it off is not asked again");
}

/// Returns the status of a request made in an unusual way.
async fn status(house: &House, (address, tls): (&str, bool), request: axum::http::request::Builder) -> u16 {
    let peer = Peer { address: format!("{address}:4000").parse().unwrap(), tls };
    let request = request.extension(peer).body(Body::empty()).unwrap();
    house.doors.clone().oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn probes_know_no_name_of_ours_and_still_name_one_host() {
    // Red where PROBES in http/front.rs admits any request that names no host, or two.
    let house = House::open(&[]).await;
    let get = |version, target: &str| Request::builder().version(version).uri(target);
    let cases: [(Version, &[&str], u16); 8] = [
        (Version::HTTP_11, &["10.0.0.7:8080"], 200),
        (Version::HTTP_11, &[], 400),
        (Version::HTTP_11, &["a.test", "b.test"], 400),
        (Version::HTTP_11, &["a.test", "a.test"], 400),
        // The health checks of the container image and of HAProxy.
        (Version::HTTP_10, &[], 200),
        (Version::HTTP_10, &["a.test", "b.test"], 400),
        (Version::HTTP_2, &[], 200),
        (Version::HTTP_2, &["a.test", "b.test"], 400),
    ];
    for path in ["/healthz", "/readyz"] {
        for (version, hosts, expected) in cases {
            let request = hosts.iter().fold(get(version, path), |request, host| request.header("host", *host));
            assert_eq!(status(&house, ("127.0.0.1", false), request).await, expected, "{version:?} {path} {hosts:?}");
        }
        let target = format!("http://a.test{path}");
        assert_eq!(status(&house, ("127.0.0.1", false), get(Version::HTTP_11, &target)).await, 400, "no Host line");
        let other = get(Version::HTTP_2, &target).header("host", "b.test");
        assert_eq!(status(&house, ("127.0.0.1", false), other).await, 400, "two names");
        assert_eq!(status(&house, ("127.0.0.1", false), get(Version::HTTP_2, &target)).await, 200);
    }
}

#[tokio::test]
async fn a_target_of_another_scheme_is_not_ours_and_what_proxies_say_is() {
    // Red without is_of_another_scheme in http/front.rs; the last four of each, where it demands more.
    let local = House::at("http://localhost:8080", &[("proxy.trusted", "192.0.2.9")]).await;
    let public = House::open(&[]).await;
    let (anybody, proxy) = ("192.0.2.7", "192.0.2.9");
    for (house, host, cases) in [
        (
            &local,
            "localhost:8080",
            [
                ("https", Version::HTTP_11, (anybody, false), 421),
                ("ftp", Version::HTTP_11, (proxy, false), 421),
                ("ftp", Version::HTTP_2, (anybody, true), 421),
                ("http", Version::HTTP_11, (anybody, false), 200),
                ("https", Version::HTTP_11, (anybody, true), 200),
                ("https", Version::HTTP_11, (proxy, false), 200),
                ("https", Version::HTTP_2, (anybody, false), 200),
            ],
        ),
        (
            &public,
            "id.example.test",
            [
                ("ws", Version::HTTP_11, (anybody, true), 421),
                ("ftp", Version::HTTP_11, (anybody, false), 421),
                ("ftp", Version::HTTP_2, (anybody, true), 421),
                ("https", Version::HTTP_11, (anybody, false), 200),
                ("https", Version::HTTP_2, (anybody, false), 200),
                ("http", Version::HTTP_2, (anybody, false), 200),
                ("http", Version::HTTP_2, (anybody, true), 200),
            ],
        ),
    ] {
        for (scheme, version, from, expected) in cases {
            let request = Request::builder().version(version).uri(format!("{scheme}://{host}/login"));
            let answered = status(house, from, request.header("host", host)).await;
            assert_eq!(answered, expected, "{scheme} {version:?} {from:?} at {host}");
        }
    }
}
