//! A stream that an operator sets to another place.

use super::*;
use refused::{all_in_order, deliver_until, is_done, picky, taken};

#[tokio::test]
async fn a_stream_goes_on_from_where_it_is_set_whether_it_was_begun_or_not() {
    let world = World::new(terms()).await;
    world.sealed(3, 4).await;
    let all = all_in_order(&world.app).await;
    // A receiver that takes a log of months for the first time wants only what comes.
    assert_eq!(world.app.set_stream("http", None).await.unwrap(), Ok(3));
    world.app.seal_once().await.unwrap();
    let (sink, seen) = picky(|_| 200).await;
    deliver_until(&world.app, sink, until("all is delivered", async || is_done(&world.app).await)).await;
    let told = world.told(Kind::AuditMoved).await;
    assert_eq!(taken(&seen), [told[0].id.clone()], "nothing from before");
    assert!(told[0].detail.contains(r#""after_block":3"#) && !told[0].detail.contains("from_block"), "{told:?}");

    // A receiver that lost what it had wants it again.
    world.clock.advance(Span::hours(1));
    assert_eq!(world.app.set_stream("http", Some(1)).await.unwrap(), Ok(1));
    let (sink, seen) = picky(|_| 200).await;
    deliver_until(&world.app, sink, async {
        until("all is delivered again", async || taken(&seen).len() == 9).await;
        until("and marked", async || world.app.audit_lag().await.unwrap().streams[0].lines <= 1).await;
    })
    .await;
    assert_eq!(taken(&seen)[..8], all[4..]);
    let told = world.told(Kind::AuditMoved).await.remove(0);
    assert!(told.detail.contains(r#""from_block":4"#) && told.detail.contains(r#""after_block":1"#), "{told:?}");
}

#[tokio::test]
async fn a_stream_is_set_to_places_that_are_there_and_to_no_other() {
    let world = World::new(Terms { retention: Span::days(1), ..terms() }).await;
    world.sealed(4, 2).await;
    let set = async |name: &str, after| world.app.set_stream(name, after).await.unwrap();
    assert_eq!(set("http", Some(5)).await, Err("the log ends with block 4".to_owned()));
    assert!(set("siem", None).await.is_err_and(|why| why.contains("no stream is called siem")));
    assert!(world.app.audit_lag().await.unwrap().streams.is_empty() && world.told(Kind::AuditMoved).await.is_empty());
    assert_eq!(set("http", Some(0)).await, Ok(0));
    // Blocks before its new place are no longer held for it.
    world.clock.advance(Span::days(2));
    assert!(matches!(world.retire().await, Retired::Held(_)));
    assert_eq!(set("http", Some(2)).await, Ok(2));
    assert!(matches!(world.retire().await, Retired::Held(why) if why.contains("block 3")));
    assert!(set("http", Some(1)).await.is_err_and(|why| why.contains("the blocks up to 2 were removed")));
    assert_eq!(set("http", Some(2)).await, Ok(2));
    assert_eq!(world.app.audit_lag().await.unwrap().streams[0].moved_at, None, "nothing was delivered");
}
