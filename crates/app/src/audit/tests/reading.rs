//! Lists, filters and pages.

use super::*;

#[tokio::test]
async fn a_list_is_filtered_and_goes_on_where_a_page_ended() {
    let world = World::new(terms()).await;
    for number in 0..4_500_i64 {
        let kind = if number % 1000 == 7 { Kind::SignInFailed } else { Kind::SignedIn };
        let at = world.clock.now();
        let event = Event::new(kind, at).user(&format!("u{}", number % 5).as_str().into());
        world.app.commit(vec![Change::Record(event)], at, &crate::entropy::fresh().unwrap()).await.unwrap();
        world.clock.advance(Span(10));
    }
    let refused = Filter { outcome: Some("refused".into()), ..Filter::default() };
    let (mut found, mut from, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = world.app.audit_lines(&refused, &from, true, 2).await.unwrap();
        found.extend(page.lines);
        pages += 1;
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!((found.len(), pages >= 3), (5, true));
    assert!(found.is_sorted_by(|one, other| one.id > other.id));
    let some = Filter {
        user: Some("u3".into()),
        since: Some(Time(BEGAN.0 + 100)),
        until: Some(Time(BEGAN.0 + 200)),
        ..Filter::default()
    };
    let page = world.app.audit_lines(&some, "", false, 100).await.unwrap();
    assert_eq!(page.lines.iter().map(|line| line.at.0 - BEGAN.0).collect::<Vec<_>>(), [130, 180]);
}

#[tokio::test]
async fn a_line_says_in_which_request_it_was_written_and_from_where() {
    // Red without `event.address` in asked.rs, sign.
    let world = World::new(terms()).await;
    let write = || async {
        let event = Event::new(Kind::SignedIn, world.clock.now());
        let done = crate::pledge::to_the_end(|_pledge| {
            let (app, now) = (world.app.clone(), world.clock.now());
            async move {
                let fresh = crate::entropy::fresh()?;
                Ok(app.commit(vec![Change::Record(event)], now, &fresh).await?)
            }
        });
        done.await.unwrap();
    };
    world.app.within("r1".into(), "192.0.2.1".parse().unwrap(), write()).await;
    write().await;
    let wanted = Filter { request: Some("r1".into()), ..Filter::default() };
    let lines = world.app.audit_lines(&wanted, "", true, 9).await.unwrap().lines;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].address.as_deref(), Some("192.0.2.1"));
    assert_eq!(ids(&world.app).await.len(), 2);
}

#[tokio::test]
async fn a_list_goes_past_ids_that_are_no_text_and_leaves_out_none() {
    // Red without `is_nameable` in audit/read.rs, audit_lines: a list ended there, or began anew for ever.
    let world = World::new(terms()).await;
    world.crowd(2100).await;
    let of = |places: &str| format!("id IN (SELECT id FROM events ORDER BY id LIMIT {places})");
    let sql: String = ["1", "3 OFFSET 98", "2 OFFSET 1998", "1 OFFSET 2099"]
        .map(|places| format!("UPDATE events SET id = id || CAST(x'ff' AS text) WHERE {}; ", of(places)))
        .concat();
    let world = world.tamper(&sql).await;
    for (newest_first, limit) in [(true, 100), (false, 100), (true, 1), (false, 1), (true, 5000), (false, 5000)] {
        let (mut found, mut from) = (Vec::new(), String::new());
        for _ in 0..2200 {
            let page = world.app.audit_lines(&Filter::default(), &from, newest_first, limit).await.unwrap();
            found.extend(page.lines.into_iter().map(|line| line.id));
            let Some(next) = page.next else { break };
            from = next;
        }
        let all: BTreeSet<&String> = found.iter().collect();
        assert_eq!((found.len(), all.len()), (2100, 2100), "{newest_first} {limit}");
    }
}
