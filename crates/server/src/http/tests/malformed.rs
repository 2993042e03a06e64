//! Requests that HTTP/2 lets through and that are none (RFC 9113 §8.2.1).

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
