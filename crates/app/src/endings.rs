//! Ends or removes all that a user holds, however much that is.

use crate::{App, Fault};
use rules::id::{SessionId, UserId};
use rules::login::session::end_all_but;
use rules::{Change, Time};
use store::tables::living::{AT_ONCE, Held, Kept, Living, end, remove};

impl App {
    /// Returns the changes that end all that a user holds, but for one session. Where that is more than a database
    /// server ends in the time of one batch, most of it was ended already, in steps: to be asked only once it is
    /// decided that all of it ends. The journal has it with the changes, and nobody was told of the steps before.
    pub(crate) async fn ends_all_but(
        &self,
        user: &UserId,
        except: Option<&SessionId>,
        now: Time,
    ) -> Result<Vec<Change>, Fault> {
        // In the order of `end_all_but`.
        for kept in [Kept::Sessions, Kept::Families] {
            loop {
                let ids = self.ask(Living { kept, user, except }).await?;
                if ids.len() < AT_ONCE {
                    break;
                }
                self.engine.commit(end(&self.realm.id, kept, &ids, now)).await?;
            }
        }
        Ok(end_all_but(user, except, self.realm.settings.code_ttl, now))
    }

    /// Removes what a user holds, in steps, before the user is removed with the rest.
    pub(crate) async fn empty(&self, user: &UserId) -> Result<(), Fault> {
        for kept in [Kept::Families, Kept::Sessions] {
            loop {
                let ids = self.ask(Held { kept, user }).await?;
                for batch in remove(&self.realm.id, kept, &ids).into_iter().filter(|batch| !batch.is_empty()) {
                    self.engine.commit(batch).await?;
                }
                if ids.len() < AT_ONCE {
                    break;
                }
            }
        }
        Ok(())
    }
}
