//! Something that happens once in the middle of something else.

use std::sync::Mutex;
use store::engine::Answer;

type Event = Answer<'static, (), String>;

/// After how many more steps it happens, and what happens.
#[derive(Default)]
pub(super) struct Coming(Mutex<Option<(usize, Event)>>);

impl Coming {
    /// Lets `event` happen after so many steps from now, before the next one.
    pub(super) fn after(&self, steps: usize, event: impl Future<Output = Result<(), String>> + Send + 'static) {
        *self.0.lock().unwrap() = Some((steps, Box::pin(event)));
    }

    /// Whether it has happened.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }

    /// Called before a step: lets what is due happen.
    pub(super) async fn now(&self) -> Result<(), String> {
        match self.due() {
            Some(event) => event.await,
            None => Ok(()),
        }
    }

    fn due(&self) -> Option<Event> {
        let mut coming = self.0.lock().unwrap();
        let (left, event) = coming.take()?;
        match left {
            0 => Some(event),
            more => {
                *coming = Some((more - 1, event));
                None
            }
        }
    }
}
