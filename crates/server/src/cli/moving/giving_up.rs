//! `move --abort`: the source takes writes again, and no server starts on the copy.

use super::ends::{Act, Source, Target};
use super::{Moving, is_target};
use crate::cli::outcome::{Failure, Outcome, Reply};
use serde_json::json;
use store::engine::{CommitError, Engine};
use store::moving::marks::{self, Arrival, Leave, Mark, Marks};
use store::moving::{Named, Trouble, claim};

impl Moving {
    /// Gives a move up.
    pub(super) async fn abort(&self, source: &Source<'_>, target: Option<&Target>) -> Reply {
        let from = source.reading().await?;
        let name = &source.name;
        let Some(out) = Marks::read(&*from).await?.out else {
            return self.withdraw(name, target.filter(|_| !self.target_is_gone)).await;
        };
        let copy = match target {
            // Whatever target was named: there is none to ask.
            _ if self.target_is_gone => None,
            None => {
                let peer = &out.peer;
                return Err(Failure::Use(format!("name the target database ({peer}), or say --target-is-gone")));
            }
            Some(target) => {
                is_target(target, &out).await?;
                // Before it is opened: a server that runs on the target would keep this process off its file.
                match unserved(&*target.looking().await?, &out).await? {
                    Some(_) => Some(target.connect().await?),
                    None => None,
                }
            }
        };
        let void = if copy.is_some() { format!(", and its copy in {} becomes void", out.peer) } else { String::new() };
        self.confirm(&format!("{name} will take writes again{void}"))?;
        let mut told = format!("{name} takes writes again");
        if let Some(copy) = &copy {
            give_up(&Named::new(copy.engine(), &out.peer), &out).await?;
            copy.close();
            told += &format!("\nno server starts on the copy in {}: empty it", out.peer);
        } else if !self.target_is_gone {
            // Another move was first there, or somebody else's server runs on it.
            told += &format!("\nnothing of this move is in {}: it was left as it is", out.peer);
        }
        source.act(Act::Lift { id: out.id.clone() }).await?;
        Ok(Outcome::new(told, json!({ "from": name, "to": out.peer, "id": out.id, "state": "given up" })))
    }

    /// Frees a target that a move had claimed before it was cut short: its source was never closed to writes.
    async fn withdraw(&self, name: &str, target: Option<&Target>) -> Reply {
        let nothing = || Failure::Failed(format!("{name} is not being moved"));
        let Some(target) = target else { return Err(nothing()) };
        let engine = target.looking().await.map_err(|_| nothing())?;
        let Some(claimed) = claim::unbegun(&*engine, name).await? else { return Err(nothing()) };
        drop(engine);
        self.confirm(&format!("{} is kept for a move of {name} that did not begin, and will be free", target.name))?;
        let database = target.connect().await?;
        let freed = claim::withdraw(&target.named(&database), &claimed.id).await;
        database.close();
        if !freed? {
            return Err(Failure::Failed(format!("{} was not freed: the move has begun meanwhile", target.name)));
        }
        let text = format!("{name} is not being moved\n{} is free again", target.name);
        Ok(Outcome::new(text, json!({ "from": name, "to": target.name, "id": claimed.id, "state": "given up" })))
    }
}

/// Why a move cannot be given up.
const SERVED: &str = "a server has run on the target: what was done there would be lost, so the move stands";

/// Returns the target's mark of this move, if the move was begun there. Fails if a server has run on the target.
async fn unserved(to: &dyn Engine, out: &Mark<Leave>) -> Result<Option<Mark<Arrival>>, Failure> {
    match Marks::read(to).await?.into.filter(|into| into.id == out.id) {
        Some(into) if into.state == Arrival::Serving => Err(Failure::Failed(SERVED.into())),
        into => Ok(into),
    }
}

/// Keeps every server off the copy.
async fn give_up(to: &dyn Engine, out: &Mark<Leave>) -> Result<(), Failure> {
    match unserved(to, out).await? {
        None => Ok(()),
        Some(into) if into.state == Arrival::Abandoned => Ok(()),
        Some(into) => match marks::abandon(to, &into).await {
            Err(CommitError::Conflict { .. }) => Err(Failure::Failed(SERVED.into())),
            done => done.map_err(|error| Trouble::from(error).into()),
        },
    }
}
