//! Many people behind one address.

use super::*;

#[tokio::test]
async fn a_crowd_that_is_put_off_keeps_nobody_out_who_is_inside() {
    // Red with one counter for an address: in the morning a school's own refusals would shut out its pages and applications.
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
    // What is wrong counts at every door.
    while Ask::get("/nothing").with("cookie", SESSION).at(&house).await.status != 429 {}
    assert_eq!(of_yesterday().at(&house).await.status, 429);
}
