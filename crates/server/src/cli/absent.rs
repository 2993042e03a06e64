//! `--if-absent`: leaves what exists already as it is, so that a command can be run again.

use super::outcome::{Failure, Outcome, Reply};
use super::text::harmless;
use app::admin::Refused;
use serde_json::{Value, json};

/// Makes something unless `will_do` is set and `look` finds it: before, and again if `make` was refused, as another
/// process may have made it meanwhile. Not after a fault: it may have been made here, with a secret that nobody saw.
pub async fn or_make<L, M>(will_do: bool, look: impl Fn() -> L, make: M) -> Reply
where
    L: Future<Output = Result<Option<Outcome>, Failure>>,
    M: Future<Output = Result<Result<Outcome, Refused>, Failure>>,
{
    if !will_do {
        return Ok(make.await??);
    }
    if let Some(there) = look().await? {
        return Ok(there);
    }
    match make.await? {
        Ok(made) => Ok(created(made, true)),
        Err(refused) => look().await?.ok_or_else(|| refused.into()),
    }
}

/// Says that something exists already; `shown` describes it for programs.
pub fn there(what: &str, name: &str, shown: Value) -> Outcome {
    let text = format!("{what} \"{}\" exists already; nothing was changed", harmless(name));
    created(Outcome::new(text, shown), false)
}

/// Returns whether this is the whole answer, so that the input for making it is not asked for.
pub fn is_there(found: &Outcome) -> bool {
    found.json["created"] == json!(false)
}

/// The outcome of a look that found nothing: the input for making it can be asked for.
pub fn nothing() -> Outcome {
    Outcome::new("", Value::Null)
}

fn created(mut outcome: Outcome, is_new: bool) -> Outcome {
    outcome.json["created"] = json!(is_new);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns the reply where the look after the first one finds something, and how often was looked.
    async fn raced(made: Result<Result<Outcome, Refused>, Failure>) -> (Reply, u8) {
        let looks = Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            let found = (looks.get() > 1).then(|| there("group", "staff", json!({ "name": "staff" })));
            std::future::ready(Ok(found))
        };
        let reply = or_make(true, look, std::future::ready(made)).await;
        (reply, looks.get())
    }

    /// Red without the second look in `or_make`: the second caller would be told that it failed.
    #[tokio::test]
    async fn what_somebody_else_made_meanwhile_is_there_already() {
        let (reply, looks) = raced(Ok(Err(Refused::taken("a group called staff exists")))).await;
        let told = reply.unwrap();
        assert_eq!((&*told.text, looks), ("group \"staff\" exists already; nothing was changed", 2));
        assert_eq!(told.json, json!({ "name": "staff", "created": false }));
        assert!(is_there(&told) && !is_there(&nothing()));
    }

    /// Red with a look after every failure: a secret that was made and never shown would be overlooked.
    #[tokio::test]
    async fn what_may_have_been_made_here_is_not_called_there_already() {
        let lost = Failure::Failed("nobody knows whether it was done".into());
        assert_eq!(raced(Err(lost.clone())).await, (Err(lost), 1));
        let (reply, looks) = raced(Ok(Ok(Outcome::new("added", json!({}))))).await;
        assert_eq!((reply.unwrap().json, looks), (json!({ "created": true }), 1));
    }
}
