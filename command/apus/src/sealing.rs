//! Sealed packets: the keys of a command.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use apus::Settings;
use apus::security::SecuritySettings;
use clap::Args;

use apus_command_line::failure::Failure;
use apus_command_line::output::note;

/// Name for the folder of `apus keys`.
pub(crate) const USUAL: &str = "auto";

/// Sealing of packets, and the keys for it.
#[derive(Debug, Args)]
pub(crate) struct Sealing {
    /// Seal every packet with the keys in FOLDER, which `apus keys init` makes [default of FOLDER:
    /// the one of `apus keys`]. The table `[security]` of --config does the same with any keys
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = USUAL)]
    sealed: Option<PathBuf>,
}

/// Returns the folder of keys: the given folder, the variable `APUS_KEYS`, `/etc/apus/keys` for
/// root, or otherwise `apus/keys` in the user's configuration folder.
///
/// # Errors
///
/// No folder is given, and the environment determines none.
pub(crate) fn folder(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = given.cloned().or_else(|| variable("APUS_KEYS").map(PathBuf::from)) {
        return Ok(folder);
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/etc/apus/keys".into());
    }
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    match variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home) {
        Some(folder) => Ok(folder.join("apus/keys")),
        None => Err(Failure::Work(
            "there is no HOME: name the folder of keys with APUS_KEYS=FOLDER".to_owned(),
        )),
    }
}

/// Returns the files of a host in a folder of keys.
pub(crate) fn host_settings(folder: &Path) -> SecuritySettings {
    SecuritySettings {
        certificate: Some("host.pem".into()),
        key: Some("host.key".into()),
        ca: Some("cluster.pem".into()),
        ..SecuritySettings::default()
    }
    .in_folder(folder)
}

/// Logs the secrets of handshakes if the variable `SSLKEYLOGFILE` names a file for them, and prints
/// a warning: the file is enough to read and forge every packet.
fn log_keys_if_asked() {
    if let Some(file) = env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty()) {
        apus::security::log_keys();
        let file = file.display();
        note(&format!(
            "the secrets of handshakes go to {file} (SSLKEYLOGFILE): who reads it can read and forge every packet"
        ));
    }
}

impl Sealing {
    /// Returns the argument with this folder; [`USUAL`] means the folder of `apus keys`.
    pub(crate) const fn with(folder: PathBuf) -> Self {
        Self { sealed: Some(folder) }
    }

    /// Returns the argument as written, if present.
    pub(crate) fn word(&self) -> Option<OsString> {
        let folder = self.sealed.as_ref()?;
        let mut word = OsString::from("--sealed=");
        word.push(folder);
        Some(word)
    }

    /// Adds the keys to settings, which may come from a file.
    ///
    /// # Errors
    ///
    /// The folder contains no keys.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<(), Failure> {
        let Some(given) = &self.sealed else {
            if settings.security.is_some() {
                log_keys_if_asked();
            }
            return Ok(());
        };
        let folder = folder(Some(given).filter(|path| path.as_os_str() != USUAL))?;
        let security = host_settings(&folder);
        if let Some(missing) = security.files().into_iter().find(|file| !file.exists()) {
            let problem = format!(
                "there is no {}; `apus keys init` makes the keys of a small cluster, `apus keys issue NAME` those of \
                 another host of it",
                missing.display()
            );
            return Err(Failure::Argument { argument: "--sealed".to_owned(), problem });
        }
        settings.security = Some(security);
        log_keys_if_asked();
        Ok(())
    }
}
