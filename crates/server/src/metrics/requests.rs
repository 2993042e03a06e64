//! Counts requests by route, method and status, and how long they took.
//!
//! A route is known by its template, of which there are as many as the program defines. It gets its place at its first
//! request; from then on, counting it takes a lookup and a few additions, without a lock.

use super::Refused;
use app::stopwatch::{Sheet, Stage};
use app::tally::By;
use axum::extract::MatchedPath;
use axum::response::Response;
use hyper::Method;
use rules::oauth::ErrorCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use store::tally::{Buckets, Count, Histogram, Shards, Spread, TIMES, nanos};

/// Places for routes: a power of two, and more than there are routes.
const PLACES: usize = 128;

/// The name for requests without a route, or whose route found no place.
pub const NO_ROUTE: &str = "none";

/// The methods that are distinguished: those of RFC 9110 §9.3 and RFC 5789. A client may use any other name.
const METHODS: [&str; 10] = ["GET", "POST", "HEAD", "OPTIONS", "PATCH", "DELETE", "PUT", "TRACE", "CONNECT", "other"];

/// The statuses that are distinguished; the last place counts any other.
const STATUSES: [u16; 25] = [
    200, 201, 202, 204, 206, 301, 302, 303, 304, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 421, 422, 429, 500,
    501, 503,
];

/// What was requested, and how it was answered.
pub struct Requests {
    places: Box<[Place]>,
    nowhere: Place,
    begun: Count,
    ended: Count,
    /// Requests whose client went away before the response.
    pub abandoned: Count,
    /// Requests that took longer than `log.slow`.
    pub slow: Count,
    /// Responses that are refusals.
    pub refusals: By<Refused>,
    /// Errors of the protocols.
    pub errors: By<ErrorCode>,
    stages: Box<[Histogram]>,
}

/// A route.
#[derive(Default)]
struct Place {
    route: OnceLock<Box<str>>,
    shards: Shards<Answers>,
}

/// What one thread answered at a route.
#[derive(Default)]
struct Answers {
    statuses: [[AtomicU64; STATUSES.len() + 1]; METHODS.len()],
    times: Buckets,
    /// The times of requests that were told to come back, which are short and would hide those of the others.
    put_off: Buckets,
    /// Nanoseconds in each stage.
    stages: [AtomicU64; Stage::ALL.len()],
}

/// Where the time of a route's requests went since the start.
pub struct Spent {
    /// The template of the route.
    pub route: String,
    /// Requests that were answered.
    pub requests: u64,
    /// Their total time, in seconds.
    pub seconds: f64,
    /// Of that, the seconds in each stage.
    pub stages: [f64; Stage::ALL.len()],
}

impl Requests {
    /// Starts with no requests.
    pub fn new() -> Self {
        Requests {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            nowhere: Place::default(),
            begun: Count::default(),
            ended: Count::default(),
            abandoned: Count::default(),
            slow: Count::default(),
            refusals: By::default(),
            errors: By::default(),
            stages: Stage::ALL.iter().map(|_| Histogram::new(&TIMES)).collect(),
        }
    }

    /// Counts a request that is being answered from now on.
    pub fn begin(&self, route: Option<&MatchedPath>, method: &Method) -> Running<'_> {
        self.begun.one();
        let place = route.map_or(&self.nowhere, |route| self.place(route.as_str()));
        let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        Running { requests: self, place, method, ended: false }
    }

    /// Returns where a route is counted: the first place at or after its hash that is its own or free.
    fn place(&self, route: &str) -> &Place {
        // FNV-1a: it only has to spread a few dozen names.
        let hash = route
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        for step in 0..PLACES {
            let place = &self.places[(hash as usize).wrapping_add(step) % PLACES];
            if **place.route.get_or_init(|| route.into()) == *route {
                return place;
            }
        }
        &self.nowhere
    }

    fn known(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(|place| place.route.get().is_some()).chain([&self.nowhere])
    }

    /// Returns how many requests are being answered.
    pub fn in_flight(&self) -> u64 {
        // In this order, a request that ends between the two reads counts as ended only if it counts as begun.
        let ended = self.ended.sum();
        self.begun.sum().saturating_sub(ended)
    }

    /// Calls `with` for each route, method and status, with the count.
    pub fn answers(&self, mut with: impl FnMut(&str, &str, &str, u64)) {
        for place in self.known() {
            for (method, name) in METHODS.iter().enumerate() {
                for status in 0..=STATUSES.len() {
                    let count = place.shards.all().map(|shard| shard.statuses[method][status].load(Relaxed)).sum();
                    if count > 0 {
                        let status = STATUSES.get(status).map_or_else(|| "other".to_owned(), u16::to_string);
                        with(place.name(), name, &status, count);
                    }
                }
            }
        }
    }

    /// Calls `with` for each route, whether its requests were told to come back, and how long they took.
    pub fn times(&self, mut with: impl FnMut(&str, &str, &Spread)) {
        for place in self.known() {
            for (put_off, spread) in
                [("no", place.spread(|shard| &shard.times)), ("yes", place.spread(|shard| &shard.put_off))]
            {
                if spread.count > 0 {
                    with(place.name(), put_off, &spread);
                }
            }
        }
    }

    /// Returns where the time went, for each route.
    pub fn spent(&self) -> Vec<Spent> {
        let stage = |place: &Place, stage: usize| {
            place.shards.all().map(|shard| shard.stages[stage].load(Relaxed)).sum::<u64>()
        };
        let spent = self.known().map(|place| {
            let (times, put_off) = (place.spread(|shard| &shard.times), place.spread(|shard| &shard.put_off));
            let stages: [f64; _] = std::array::from_fn(|at| Duration::from_nanos(stage(place, at)).as_secs_f64());
            let theirs = Stage::ALL.iter().zip(&stages).filter(|(stage, _)| !stage.is_ours()).map(|(_, sum)| sum);
            let seconds = times.sum + put_off.sum + theirs.sum::<f64>();
            Spent { route: place.name().to_owned(), requests: times.count + put_off.count, seconds, stages }
        });
        spent.filter(|spent| spent.requests > 0).collect()
    }

    /// Returns how long requests spent in each stage, for those that were in it.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Spread)> {
        Stage::ALL.iter().zip(&self.stages).map(|(stage, times)| (stage.name(), times.spread()))
    }
}

impl Place {
    fn name(&self) -> &str {
        self.route.get().map_or(NO_ROUTE, |route| route)
    }

    fn spread(&self, which: impl Fn(&Answers) -> &Buckets) -> Spread {
        Buckets::total(&TIMES, self.shards.all().map(which))
    }
}

/// A request that is being answered. If it is dropped before [`Running::end`], it was abandoned.
pub struct Running<'a> {
    requests: &'a Requests,
    place: &'a Place,
    method: usize,
    ended: bool,
}

impl Running<'_> {
    /// Returns its route, as metrics, logs and traces name it.
    pub fn route(&self) -> &str {
        self.place.name()
    }

    /// Returns its method, likewise; one that is not distinguished could have any name.
    pub fn method(&self) -> &'static str {
        METHODS[self.method]
    }

    /// Counts the response, which took us so long: the body, which a client may send slowly, counts only as a stage.
    pub fn end(mut self, response: &Response, took: Duration, sheet: &Sheet) {
        self.ended = true;
        let answers = self.place.shards.own();
        let number = response.status().as_u16();
        let status = STATUSES.iter().position(|known| *known == number).unwrap_or(STATUSES.len());
        answers.statuses[self.method][status].fetch_add(1, Relaxed);
        let refused = response.extensions().get::<Refused>();
        let times = if refused.is_some_and(Refused::puts_off) { &answers.put_off } else { &answers.times };
        times.observe(&TIMES, nanos(took));
        for ((times, spent), (_, sum)) in self.requests.stages.iter().zip(&answers.stages).zip(sheet.sums()) {
            if sum > Duration::ZERO {
                times.took(sum);
                spent.fetch_add(nanos(sum), Relaxed);
            }
        }
        if let Some(refused) = refused {
            self.requests.refusals.one(*refused);
        }
        if let Some(code) = response.extensions().get::<ErrorCode>() {
            self.requests.errors.one(*code);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.requests.ended.one();
        if !self.ended {
            self.requests.abandoned.one();
        }
    }
}
