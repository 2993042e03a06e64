//! A server whose public URL has a path.

use super::*;
use crate::pages::assets;

#[tokio::test]
async fn what_pages_are_made_of_is_found_below_a_path() {
    // Red where http/pages/assets.rs looks for the path that was stripped before.
    let house = House::at("https://id.example.test/auth", &[]).await;
    for asset in assets() {
        let found = Ask::get(&format!("/auth{}", asset.path)).at(&house).await;
        assert_eq!(found.status, 200, "{}", asset.path);
    }
    let page = Ask::get("/auth/login").at(&house).await;
    assert!(page.status == 200 && page.text.contains("\"/auth/assets/"), "{}", page.text);
    for slug in ["busy", "not-found"] {
        let described = Ask::get(&format!("/auth/api/v1/problems/{slug}")).at(&house).await;
        assert_eq!(described.status, 200, "{slug}");
    }
}
