//! Many users behind one address.

use super::*;

#[tokio::test]
async fn a_crowd_that_is_put_off_keeps_nobody_out_who_is_inside() {
    // Red with one counter per address: a school's own refusals would shut out its pages and applications each morning.
    let options = [&NARROW[..], &[("limits.failures_burst", "3"), ("limits.failures_per_address", "1")]].concat();
    let house = House::open(&options).await;
    let held = house.fill().await;
    let newcomer = || Ask::get("/login");
    let of_yesterday = || Ask::get("/account").with("cookie", SESSION);
    while newcomer().at(&house).await.status != 429 {}
    for _ in 0..2 {
        assert_eq!(of_yesterday().at(&house).await.status, 503, "no room, and not too many");
    }
    drop(held);
    assert_ne!(of_yesterday().at(&house).await.status, 429);
    assert_eq!(Ask::get("/oauth2/jwks").at(&house).await.status, 200);
    assert_eq!(Ask::get("/oauth2/userinfo").at(&house).await.status, 401);
    // Wrong requests count at every door.
    while Ask::get("/nothing").with("cookie", SESSION).at(&house).await.status != 429 {}
    assert_eq!(of_yesterday().at(&house).await.status, 429);
}

#[tokio::test]
async fn whoever_is_put_off_again_and_again_while_hashing_goes_short_is_told_in_turn() {
    // Red where a door answers at once: for pages, for applications' requests, and over a rate.
    let options = [&NARROW[..], &[("limits.failures_burst", "20"), ("limits.failures_per_address", "1")]].concat();
    let house = House::open(&options).await;
    let held = house.fill().await;
    let slowed = || house.site.admission.slowed();
    for ask in [|| Ask::get("/login"), || Ask::get("/oauth2/jwks")] {
        assert_eq!(ask().at(&house).await.status, 503);
    }
    assert_eq!(slowed(), 0, "hashing has all that it wants");
    house.site.admission.slow_refusals(Duration::from_millis(100));
    for ask in [|| Ask::get("/login"), || Ask::get("/oauth2/jwks")] {
        let before = slowed();
        while slowed() < before + 3 {
            assert_eq!(ask().at(&house).await.status, 503);
        }
    }
    while Ask::get("/login").at(&house).await.status != 429 {}
    let before = slowed();
    while slowed() < before + 3 {
        assert_eq!(Ask::get("/login").at(&house).await.status, 429);
    }
    drop(held);
    let before = slowed();
    assert_eq!(Ask::get("/oauth2/jwks").at(&house).await.status, 200);
    assert_eq!(slowed(), before, "who is served waits for nobody");
}
