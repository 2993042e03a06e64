//! A record that ended much, as batches of earlier versions did.

use super::*;
use rules::id::GroupId;
use std::sync::atomic::Ordering::SeqCst;
use store::engine::SENT_AT_ONCE;
use store::tables::journal::{Known, known};
use store::tables::users::InGroup;

const MANY: usize = 150;

async fn commit(node: &Node, changes: Vec<Change>) {
    node.app.commit(changes, NOW, &entropy::fresh().unwrap()).await.unwrap();
}

async fn members(node: &Node, group: &GroupId) -> usize {
    let all = InGroup { group, after: "", limit: 1000 };
    ask(&**node.app.below(), &node.app.realm.id, all).await.unwrap().len()
}

#[tokio::test]
async fn what_one_batch_ended_is_said_in_many_and_again_from_the_beginning_if_that_was_interrupted() {
    // Red where a record is said in one batch, however much it ended (store::tables::journal, replay): a server that is
    // sent one statement after the other would not be done in time, and nobody would ever be let in.
    let server = Server::start().await;
    let (node, staff) = (Node::ready(&server, "a").await, GroupId("staff".into()));
    let people: Vec<String> = (0..MANY).map(|number| format!("user {number:03}")).collect();
    let add = |name: &String| Change::AddUser(Box::new(User::new(name.as_str().into(), name.as_str(), NOW)));
    commit(&node, people.iter().map(add).collect()).await;
    commit(&node, vec![Change::AddGroup { group: staff.clone(), name: "staff".to_owned() }]).await;
    let set = |name: &String, member| {
        let change = Change::SetMember { group: staff.clone(), user: name.as_str().into(), member };
        [change, Change::Record(Event::new(Kind::GroupChanged, NOW))]
    };
    commit(&node, people.iter().flat_map(|name| set(name, true)).collect()).await;
    let standby = server.standby().await;
    commit(&node, people.iter().flat_map(|name| set(name, false)).collect()).await;
    server.fail_over(standby, "second");
    server.longest.store(0, SeqCst);
    // It takes two batches of the replay, and is away.
    let stops = Arc::clone(&server);
    *node.journal.on_read.lock().unwrap() = Some(Box::new(move || *stops.takes.lock().unwrap() = Some(2)));
    assert!(node.app.meet().await.is_err());
    let left = members(&node, &staff).await;
    assert!(left > 0 && left < MANY && !node.serves().await, "{left}");
    let witness = node.journal.records.lock().unwrap()[0].witness.clone().unwrap();
    let told = async || known(&**node.app.below(), &node.app.realm.id, vec![witness.clone()]).await.unwrap();
    assert!(told().await.is_empty(), "nothing says that it was said");
    *server.takes.lock().unwrap() = None;
    node.app.meet().await.unwrap();
    assert_eq!((members(&node, &staff).await, told().await.get(&witness)), (0, Some(&Known::Said)));
    assert!(node.serves().await && !node.app.fences().await.unwrap().up);
    assert!(server.longest.load(SeqCst) <= SENT_AT_ONCE, "{}", server.longest.load(SeqCst));
}
