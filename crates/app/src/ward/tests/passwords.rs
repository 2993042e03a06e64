//! A password that was changed before a failover.

use super::*;
use crate::browser::Browser;

const OLD: &[u8] = b"gorse violet anvil 41";
const NEW: &[u8] = b"another violet anvil 42";

async fn found(node: &Node, user: &User) -> User {
    ask(&**node.app.below(), &node.app.realm.id, ById(&user.id)).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_changed_password_stays_changed_although_the_old_one_was_hashed_again_meanwhile() {
    // Red where a rehash is a later change of the account (rules::people::user, rehashed): the replay left it alone,
    // and the old password was good for ever.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    let ada = User::new("ada".into(), "ada", NOW);
    let added = vec![Change::AddUser(Box::new(ada.clone()))];
    one.app.commit(added, NOW, &entropy::fresh().unwrap()).await.unwrap();
    let before = one.app.set_password(&ada, OLD).await.unwrap().unwrap();
    let standby = server.standby().await;
    let changed = other.app.set_password(&before, NEW).await.unwrap().unwrap();
    server.fail_over(standby, "second");
    one.clock.advance(Span::seconds(30));
    one.app.meet().await.unwrap();
    // Somebody who knows the old password signs in while the other node is waited for.
    assert_eq!(found(&one, &ada).await.password, before.password);
    let again = one.app.rehashed(before.clone(), OLD, &Browser::default()).await;
    let meanwhile = found(&one, &ada).await;
    assert_eq!((&meanwhile.password, meanwhile.updated), (&again.password, before.updated));
    assert_ne!(again.password, before.password);
    other.clock.advance(Span::seconds(30));
    other.app.meet().await.unwrap();
    assert_eq!(found(&one, &ada).await.password, changed.password);
    // What was hashed again is in the journal of its node, and changes nothing when it is replayed.
    let standby = server.standby().await;
    server.fail_over(standby, "third");
    one.app.meet().await.unwrap();
    assert_eq!(found(&one, &ada).await.password, changed.password);
}
