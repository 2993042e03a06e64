//! The file with the link that makes the first account, for operators who do not look at the server's terminal.

use crate::private::{self, aside};
use app::complaint::Complaints;
use app::{App, Fault};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// The file's name in the data folder.
const NAME: &str = "setup-link";
/// How long the file may hold a void link, or be there when it is of no use any more.
const PAUSE: Duration = Duration::from_secs(5);

/// The file with the link in a data folder.
#[derive(Clone, Debug)]
pub struct LinkFile(PathBuf);

impl LinkFile {
    /// Returns the file of a data folder, whether it exists or not.
    pub fn of(data: &Path) -> Self {
        LinkFile(data.join(NAME))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the file, or replaces the link in it.
    pub async fn write(&self, link: &str) -> Result<(), String> {
        self.put(link, |_| true).await
    }

    /// Replaces the link in the file, if the file exists: the link that it holds is void.
    pub async fn follow(&self, link: &str) -> Result<(), String> {
        self.put(link, Path::exists).await
    }

    async fn put(&self, link: &str, wanted: fn(&Path) -> bool) -> Result<(), String> {
        let (file, text) = (self.0.clone(), Zeroizing::new(format!("{link}\n")));
        let put = move || if wanted(&file) { private::replace(&file, text.as_bytes()) } else { Ok(()) };
        aside(put).await.map_err(|error| format!("{}: {error}", self.0.display()))
    }

    /// Removes the file, if it exists.
    pub async fn remove(&self) {
        let file = self.0.clone();
        aside(move || drop(fs::remove_file(file))).await;
    }

    /// Keeps the link in the file usable: replaces a link that runs out or is void, and removes the file once there is
    /// an owner. If somebody removes the file, no other is made.
    pub async fn look_after(&self, app: &App) {
        let mut complaints = Complaints::default();
        loop {
            tokio::time::sleep(PAUSE).await;
            let looked = self.look(app).await;
            if complaints.hear("cannot renew or check the file with the set-up link", looked) == Some(false) {
                return;
            }
        }
    }

    /// Looks at the file once; returns whether there is still anything to look after.
    async fn look(&self, app: &App) -> Result<bool, String> {
        let told = |fault: Fault| fault.to_string();
        let file = self.0.clone();
        let Ok(text) = aside(move || fs::read_to_string(file)).await else { return Ok(false) };
        let link = text.trim().rsplit('#').next().unwrap_or_default();
        if app.setup_link_lasts(link).await.map_err(told)? {
            return Ok(true);
        }
        match app.offer_setup(false).await.map_err(told)? {
            Some(link) => self.write(&address(app, link.reveal())).await.map(|()| true),
            None => {
                self.remove().await;
                Ok(false)
            }
        }
    }
}

/// Returns the link as a URL for browsers.
pub fn address(app: &App, secret: &str) -> String {
    format!("{}/setup#{secret}", app.realm.issuer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Instance;
    use crate::config::{Config, Sources};
    use app::sign_up::NewPerson;
    use rules::people::Role;

    #[tokio::test]
    async fn the_link_in_the_file_is_good_until_there_is_an_owner() {
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().display().to_string()), ("hash.threads", "1".to_owned())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let instance = Instance::open(&config, Some(&config.public_url(8080))).await.unwrap();
        let (app, file) = (&instance.app, LinkFile::of(folder.path()));
        let held = || fs::read_to_string(file.path()).unwrap().trim().to_owned();
        assert_eq!(file.look(app).await, Ok(false), "where nobody left a link, nobody is given one");

        let first = address(app, app.offer_setup(false).await.unwrap().unwrap().reveal());
        file.write(&first).await.unwrap();
        assert_eq!((file.look(app).await, held()), (Ok(true), first.clone()), "what is good stays");

        // Void, as after `portiere setup-link` on another node, or after its time.
        app.offer_setup(true).await.unwrap();
        assert_eq!(file.look(app).await, Ok(true));
        let second = held();
        assert!(second != first && app.setup_link_lasts(second.rsplit('#').next().unwrap()).await.unwrap(), "{second}");

        let ada = NewPerson::new("ada", "", b"correct horse battery staple");
        app.add_user(&ada, Role::Owner).await.unwrap().unwrap();
        assert_eq!(file.look(app).await, Ok(false));
        assert!(!file.path().exists());
        instance.close().await;
    }
}
