//! Keys that follow one another.

use super::*;

#[tokio::test]
async fn a_key_is_followed_by_another_only_by_who_has_both_or_says_so() {
    let world = World::new(terms()).await;
    world.sealed(2, 2).await;
    let engine = Arc::clone(&world.app.engine);
    let of = |current: u8, old: &[u8]| Terms {
        keys: Keys { current: Some(key(current)), old: old.iter().map(|seed| key(*seed)).collect() },
        ..terms()
    };
    let stranger = node_on(Arc::clone(&engine), &world.clock, of(8, &[])).await;
    world.write(1).await;
    let why = stranger.cannot_seal().await.unwrap().unwrap();
    assert!(why.contains(key(7).id()) && why.contains("copy audit.key"), "{why}");
    assert!(stranger.seal_once().await.is_err());
    let both = node_on(Arc::clone(&engine), &world.clock, of(8, &[7])).await;
    assert_eq!(both.cannot_seal().await.unwrap(), None);
    assert_eq!(both.seal_once().await.unwrap(), Sealed::All(1));
    assert_eq!(verify(&both, None).await.1, vec![]);
    assert_eq!(whats(&verify(&world.app, None).await.1), [("key.missing", 3)]);
    let needless = Rekeyed { key: key(8).id().to_owned(), changed: false };
    assert_eq!(both.rekey().await.unwrap(), Ok(needless), "there is no need");

    let lost = node_on(engine, &world.clock, of(9, &[])).await;
    assert_eq!(lost.rekey().await.unwrap(), Ok(Rekeyed { key: key(9).id().to_owned(), changed: true }));
    world.write(3).await;
    assert_eq!(lost.seal_once().await.unwrap(), Sealed::All(3));
    assert_eq!(whats(&verify(&lost, None).await.1), [("key.missing", 1), ("key.missing", 3), ("key.missing", 3)]);
    let all = Keys { current: Some(key(9)), old: vec![key(7), key(8)] };
    let auditor = node_on(Arc::clone(&lost.engine), &world.clock, Terms { keys: all, ..terms() }).await;
    assert_eq!(verify(&auditor, None).await.1, vec![]);
}

#[tokio::test]
async fn a_key_that_another_node_still_has_is_not_lost_and_whoever_says_so_is_told() {
    // Red without `Newest` after seal_with in audit/seal.rs, rekey: it said that the log was sealed under its key.
    for other_has in [7, 9] {
        let world = World::new(terms()).await;
        world.sealed(2, 2).await;
        let of = |current: u8, old: &[u8]| Terms {
            keys: Keys { current: Some(key(current)), old: old.iter().map(|seed| key(*seed)).collect() },
            ..terms()
        };
        let other = node_on(Arc::clone(&world.app.engine), &world.clock, of(other_has, &[7])).await;
        // The entry is the first commit, its block the second.
        let before = move |number: usize| -> store::engine::Answer<'static, (), store::engine::CommitError> {
            let other = other.clone();
            Box::pin(async move {
                if number == 1 {
                    assert_eq!(other.seal_once().await.unwrap(), Sealed::All(1));
                }
                Ok(())
            })
        };
        let lost = node_on(ceiling::Meddled::new(&world, Box::new(before)), &world.clock, of(9, &[])).await;
        let done = lost.rekey().await.unwrap();
        assert_eq!(world.app.audit_head().await.unwrap().key, key(other_has).id());
        match done {
            Ok(done) => assert_eq!((other_has, done.key.as_str()), (9, key(9).id())),
            Err(why) => {
                assert!(other_has == 7 && why.contains("another node still has key") && why.contains(key(7).id()))
            }
        }
    }
}

#[tokio::test]
async fn the_log_goes_on_whatever_a_wrong_clock_gave_out() {
    // Red without the second condition of `until` in audit/mod.rs, Tenure::holds: this node would not ask for years.
    let world = World::new(terms()).await;
    let ahead = Span::days(3_650);
    world.clock.advance(ahead);
    let mut tenure = Tenure::of(SEAL);
    assert!(tenure.holds(&world.app).await.unwrap());
    world.clock.advance(Span(-ahead.0));
    let other = node_on(Arc::clone(&world.app.engine), &world.clock, terms()).await;
    assert!(Tenure::of(SEAL).holds(&other).await.unwrap(), "nobody waits for the end of such a lease");
    assert!(!tenure.holds(&world.app).await.unwrap(), "and whoever has it learns that it is another's");
}

#[tokio::test]
async fn a_node_without_the_key_says_that_it_does_not_seal() {
    let world = World::new(terms()).await;
    world.sealed(1, 2).await;
    let step = async |app: &App| {
        let mut complaints = Complaints::default();
        app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await.unwrap();
        app.audit_idle()
    };
    assert_eq!(step(&world.app).await, None);
    let keyless = Terms { keys: Keys::default(), ..terms() };
    let restored = node_on(Arc::clone(&world.app.engine), &world.clock, keyless).await;
    let why = step(&restored).await.unwrap();
    assert!(why.contains("it has no audit key"), "{why}");
    let told = restored.rekey().await.unwrap().unwrap_err();
    assert!(told.contains("head -c 32 /dev/urandom"), "{told}");
}

#[tokio::test]
async fn while_nothing_is_sealed_a_stream_says_how_much_it_lacks_and_since_when() {
    // Red where `audit_lag` counts only what is sealed: a receiver got nothing, and every figure of its stream looked
    // well.
    let world = World::new(terms()).await;
    world.sealed(1, 2).await;
    begin(&world, Place { block: 2, line: String::new() }).await;
    let behind = async || {
        let stream = world.app.audit_lag().await.unwrap().streams.remove(0);
        (stream.lines, stream.waits, stream.trouble, stream.stuck)
    };
    assert_eq!(behind().await, (0, Span::ZERO, String::new(), false));
    world.write(3).await;
    world.clock.advance(Span::minutes(20));
    world.write(1).await;
    assert_eq!(behind().await, (4, Span::minutes(20), String::new(), false));
    world.app.seal_once().await.unwrap();
    world.clock.advance(Span::minutes(1));
    world.write(1).await;
    assert_eq!(behind().await, (5, Span::minutes(21), String::new(), false), "and what is sealed as before");
}
