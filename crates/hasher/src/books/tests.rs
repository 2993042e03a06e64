use std::time::Duration;

use super::*;
use crate::{
    FairKey,
    argon2::Cost,
    job::{Input, Reach, Reply},
};
use tokio::sync::oneshot;

fn job(kind: Kind, input: Input, key: FairKey) -> Job {
    let reply = Reply::Caller(oneshot::channel().0);
    Job { kind, input, reply, reach: Reach::Here, key, id: 0, failed: false }
}

/// Books with so many threads and so many KiB for each, and waiting jobs of 10 KiB; three lanes are best.
fn books(threads: usize, memory: u64, waiting: usize) -> (Books, Kind) {
    let mut books = Books::new(threads, memory * threads as u64, Instant::now());
    let kind = Kind::of_policy(Cost::new(10, 1, 1).unwrap());
    books.know([(kind.into(), &[4.0, 3.0, 2.0, 5.0, 5.0].map(Some)[..])].into_iter());
    let key = FairKey::new("main", [192, 0, 2, 1].into());
    for _ in 0..waiting {
        let input = Input::Serial { password: Default::default(), salt: Vec::new() };
        books.queue.push(1, job(kind, input, key.clone()));
    }
    (books, kind)
}

/// How many jobs each thread takes, one thread after the other.
fn taken(threads: usize, memory: u64, waiting: usize) -> Vec<usize> {
    let (mut books, kind) = books(threads, memory, waiting);
    let mut take = |thread| match books.turn(thread) {
        Some(Turn::Run(_, size)) => books.start(thread, (kind, size), Instant::now()).len(),
        _ => 0,
    };
    (0..threads).map(&mut take).collect()
}

#[test]
fn idle_threads_share_what_waits() {
    assert_eq!(taken(2, 1000, 1), [1, 0]);
    assert_eq!(taken(2, 1000, 2), [1, 1], "rather than two on one thread");
    assert_eq!(taken(2, 1000, 3), [2, 1]);
    assert_eq!(taken(2, 1000, 4), [2, 2]);
    assert_eq!(taken(2, 1000, 9), [3, 3], "more lanes do not pay");
    assert_eq!(taken(4, 1000, 6), [2, 2, 1, 1]);
}

#[test]
fn the_last_that_had_work_is_called_first() {
    let (mut books, _) = books(3, 1000, 0);
    let start = books.worked[0];
    books.worked = vec![start, start + Duration::from_secs(2), start + Duration::from_secs(1)];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        books.asleep = order.to_vec();
        assert_eq!([(); 4].map(|()| books.rouse()), [Some(1), Some(2), Some(0), None], "fell asleep as {order:?}");
    }
}

#[test]
fn lanes_fit_into_the_memory() {
    assert_eq!(taken(2, 29, 9), [2, 2]);
    assert_eq!(taken(2, 10, 9), [1, 1]);
    assert_eq!(taken(2, 7, 9), [1, 0], "one after the other");
}

#[test]
fn a_thread_that_holds_more_than_it_needs_gives_it_back_to_one_that_starves() {
    let (mut books, _) = books(2, 10, 9);
    books.held[0].kib = 15;
    assert!(matches!(books.turn(1), Some(Turn::Starve)));
    assert!(matches!(books.turn(0), Some(Turn::Run(_, 1))));
    books.starved.push(1);
    assert!(matches!(books.turn(0), Some(Turn::Release)));
}

/// Puts a job of an address of its own behind the waiting ones.
fn push(books: &mut Books, host: u8, kind: Kind) {
    let input = Input::Serial { password: Default::default(), salt: Vec::new() };
    let key = FairKey::new("main", [192, 0, 2, host].into());
    let cost = books.share(kind);
    books.queue.push(cost, job(kind, input, key));
}

/// Argon2 with so many KiB and passes.
fn kind(memory: u32, passes: u32) -> Kind {
    Kind::of_policy(Cost::new(memory, passes, 1).unwrap())
}

/// What the thread runs now, if anything.
fn run(books: &mut Books, thread: usize) -> Option<Kind> {
    match books.turn(thread)? {
        Turn::Run(kind, size) => {
            books.start(thread, (kind, size), Instant::now());
            Some(kind)
        }
        Turn::Release | Turn::Starve => None,
    }
}

#[test]
fn who_is_next_and_lacks_memory_loses_one_batch_at_most() {
    let (heavy, next, light, long) = (kind(600, 2), kind(800, 1), kind(30, 1), kind(300, 6));
    let mut books = Books::new(6, 1000, Instant::now());
    push(&mut books, 0, heavy);
    assert_eq!(run(&mut books, 0), Some(heavy));
    for (host, kind) in (1..).zip([next, long, light, light, light, light]) {
        push(&mut books, host, kind);
    }
    assert_eq!(run(&mut books, 1), Some(light), "but not the one that takes longer than what runs");
    assert_eq!([run(&mut books, 2), run(&mut books, 3)], [Some(light); 2]);
    // The batch that it waited for is done; the light jobs that still run are in its way.
    books.finish(0, (None, 0), 0, Instant::now());
    push(&mut books, 9, kind(150, 1));
    assert_eq!([run(&mut books, 0), run(&mut books, 4)], [Some(next), Some(light)], "there is room for both");
}

#[test]
fn nobody_passes_when_only_those_who_passed_are_in_the_way() {
    let (heavy, next, light) = (kind(600, 2), kind(1000, 1), kind(30, 1));
    let mut books = Books::new(4, 1000, Instant::now());
    push(&mut books, 0, heavy);
    assert_eq!(run(&mut books, 0), Some(heavy));
    for (host, kind) in (1..).zip([next, light, light, light]) {
        push(&mut books, host, kind);
    }
    assert_eq!(run(&mut books, 1), Some(light));
    books.finish(0, (None, 0), 0, Instant::now());
    assert_eq!([run(&mut books, 0), run(&mut books, 2)], [None; 2], "or it would wait for ever");
    books.finish(1, (None, 0), 0, Instant::now());
    assert_eq!(run(&mut books, 2), Some(next));
}

#[test]
fn a_long_job_passes_where_it_takes_neither_memory_nor_the_last_thread() {
    let (heavy, next, long) = (kind(600, 1), kind(600, 1), kind(100, 64));
    for (threads, passes) in [(3, true), (2, false)] {
        let mut books = Books::new(threads, 1000, Instant::now());
        push(&mut books, 0, heavy);
        assert_eq!(run(&mut books, 0), Some(heavy));
        push(&mut books, 1, next);
        push(&mut books, 2, long);
        assert_eq!(run(&mut books, 1), passes.then_some(long));
    }
}

/// Red where the excess, in today's costs, is taken from a queue that is booked at older costs: nobody would be left.
#[test]
fn no_more_go_than_are_too_many_although_all_became_dearer() {
    let (usual, millisecond) = (kind(2500, 1), 1_000_000);
    let mut books = Books::new(1, 1 << 20, Instant::now());
    assert_eq!(books.booked(7), 7, "nothing waits");
    (0..100).for_each(|host| push(&mut books, host, usual));
    assert_eq!((books.share(usual), books.booked(7)), (millisecond, 7));
    for (pace, need) in [(800.0, 20), (1600.0, 10), (100.0, 40)] {
        let mut books = Books::new(1, 1 << 20, Instant::now());
        (0..100).for_each(|host| push(&mut books, host, usual));
        books.know([(usual.into(), &[Some(pace)][..])].into_iter());
        assert_eq!(books.booked(40 * millisecond), need * millisecond, "{pace}");
    }
    books.know([(usual.into(), &[Some(1600.0)][..])].into_iter());
    let gone = books.shed(100 * millisecond, Instant::now());
    assert_eq!(gone.len(), 76, "24 of 4 ms would wait no longer than 100");
}

#[test]
fn who_takes_the_memory_of_others_pays_for_their_threads() {
    let books = Books::new(8, 1000, Instant::now());
    let each = |memory| books.share(kind(memory, 1)) as f64 / books.costs.batch(kind(memory, 1), 1) as f64;
    let shares = [100, 125, 126, 200, 330, 500, 501, 1000].map(each);
    assert_eq!(shares.map(|share| (share * 100.0).round() / 100.0), [1.0, 1.0, 1.14, 1.6, 2.67, 4.0, 8.0, 8.0]);
    assert_eq!(books.share(Kind::Bcrypt { cost: 10 }), books.costs.batch(Kind::Bcrypt { cost: 10 }, 1));
}
