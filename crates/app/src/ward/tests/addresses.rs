//! An address that was taken away before a failover.

use super::*;
use crate::account::ProfileForm;
use rules::people::names::LoginKey;
use store::tables::users::ByLogin;

#[tokio::test]
async fn an_address_that_was_taken_away_signs_nobody_in_at_a_server_that_lost_that() {
    // Red without SetEmail in rules/ending.rs, Ending::of.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let email = "ada@example.org";
    let ada = User { email: Some(email.into()), email_verified: true, ..User::new("ada".into(), "ada", NOW) };
    let added = vec![Change::AddUser(Box::new(ada.clone())), Change::StartSession(Box::new(session(NOW)))];
    node.app.commit(added, NOW, &entropy::fresh().unwrap()).await.unwrap();
    let standby = server.standby().await;
    let form = ProfileForm { claims: &[], email: Some("") };
    node.app.save_profile(&session(NOW), &form).await.unwrap().unwrap();
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    let key = LoginKey::of(email);
    let asked = (ById(&ada.id), ByLogin(key.as_ref()));
    let (found, by_email) = ask(&**node.app.below(), &node.app.realm.id, asked).await.unwrap();
    let found = found.unwrap();
    assert_eq!((found.email, found.email_verified, by_email.is_some()), (None, false, false));
}
