//! The export list for `apus fs serve --exports`: directories, networks that may mount them, and
//! their rights.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use apus_fs::serve::Export;
use apus_fs::trust::{Network, Trust};
use apus_fs_core::server::{Server, ServerSettings};
use apus_fs_store::{DirectoryOptions, DirectoryStore};
use serde::Deserialize;

use super::place;
use apus_command_line::failure::Failure;

/// Folder in an exported directory, reserved for the store.
const STORE: &str = ".apus-fs";

/// One directory to export.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) directory: PathBuf,
    /// Entries of a list are read-only by default.
    #[serde(default)]
    pub(super) writable: bool,
    #[serde(default)]
    pub(super) squash: Option<u32>,
    /// Root of other hosts is root here.
    #[serde(default)]
    pub(super) trust_root: bool,
    /// Networks served without encryption.
    #[serde(default)]
    trust: Vec<String>,
}

impl Entry {
    /// An entry for a directory named on the command line.
    pub(super) fn new(directory: PathBuf, writable: bool, squash: Option<u32>) -> Self {
        Self { directory, writable, squash, trust_root: false, trust: Vec::new() }
    }

    /// Replaces the directory with its path without links.
    pub(super) fn resolve(&mut self) -> Result<(), String> {
        let shown = self.directory.display();
        self.directory =
            std::fs::canonicalize(&self.directory).map_err(|error| format!("{shown}: {error}"))?;
        Ok(())
    }

    /// Opens the directory.
    pub(super) fn open(
        &self,
        number: u8,
        name: &str,
        trust: Vec<Network>,
    ) -> Result<Export<DirectoryStore>, Failure> {
        let doing = format!("open {}", self.directory.display());
        let settings = ServerSettings {
            read_only: !self.writable,
            squash: self.squash,
            trusts_root: self.trust_root,
            // A directory that was never served has no leases.
            grace: self.directory.join(STORE).exists(),
            export: number,
            ..ServerSettings::default()
        };
        let store = DirectoryStore::open(&self.directory, DirectoryOptions::default())
            .map_err(|error| Failure::of(&doing, &error))?;
        let server = Server::new(store, settings, apus_fs::boot_time())
            .map_err(|error| Failure::of(&doing, &error))?;
        Ok(Export {
            name: name.to_owned(),
            directory: self.directory.display().to_string(),
            read_only: !self.writable,
            trust: Trust::new(trust),
            server,
        })
    }

    fn networks(&self, name: &str) -> Result<Vec<Network>, String> {
        let parse = |text: &String| {
            text.parse().map_err(|error| format!("export `{name}` trusts `{text}`: {error}"))
        };
        self.trust.iter().map(parse).collect()
    }
}

/// Reads a list of exports and opens their directories.
///
/// # Errors
///
/// The file cannot be read or parsed, or a directory cannot be served.
pub(super) fn open(file: &Path) -> Result<Vec<Export<DirectoryStore>>, Failure> {
    let wrong = |problem: String| Failure::Argument {
        argument: "--exports".to_owned(),
        problem: format!("{}: {problem}", file.display()),
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let mut entries = parse(&text).map_err(wrong)?;
    entries.values_mut().try_for_each(Entry::resolve).map_err(wrong)?;
    check_nesting(&entries).map_err(wrong)?;
    let numbered = (0..=u8::MAX).zip(&entries);
    numbered
        .map(|(number, (name, entry))| {
            let networks = entry.networks(name).map_err(wrong)?;
            entry.open(number, name, networks)
        })
        .collect()
}

fn parse(text: &str) -> Result<BTreeMap<String, Entry>, String> {
    let entries: BTreeMap<String, Entry> =
        toml::from_str(text).map_err(|error| error.to_string())?;
    if entries.is_empty() || entries.len() > 256 {
        return Err(format!("{} exports; 1 to 256 can be served", entries.len()));
    }
    for (name, entry) in &entries {
        place::check_name(name)?;
        if !entry.directory.is_absolute() {
            return Err(format!("the directory of export `{name}` is not an absolute path"));
        }
        entry.networks(name)?;
    }
    Ok(entries)
}

/// Rejects nested exports: two uncoordinated servers would change the same files.
fn check_nesting(entries: &BTreeMap<String, Entry>) -> Result<(), String> {
    for (name, outer) in entries {
        let nested = entries
            .iter()
            .find(|(other, inner)| *other != name && inner.directory.starts_with(&outer.directory));
        if let Some((inner, _)) = nested {
            return Err(format!("the directory of export `{inner}` is that of `{name}` or inside"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_only_unless_it_says_otherwise() {
        let text = "[music]\ndirectory = '/srv/music'\n\
            [drop]\ndirectory = '/srv/drop'\nwritable = true\nsquash = 65534\ntrust = ['10.0.0.0/8']";
        let entries = parse(text).unwrap();
        assert!(!entries["music"].writable);
        let drop = &entries["drop"];
        assert!(drop.writable);
        assert_eq!((drop.squash, drop.networks("drop").unwrap().len()), (Some(65_534), 1));
    }

    #[test]
    fn the_message_names_what_is_wrong() {
        for (text, problem) in [
            ("", "0 exports"),
            ("[a]\nwriteable = true", "unknown field `writeable`"),
            ("[a]\nwritable = true", "missing field `directory`"),
            ("[a]\ndirectory = 'srv'", "not an absolute path"),
            ("['a/b']\ndirectory = '/srv'", "letters, digits"),
            ("[a]\ndirectory = '/srv'\ntrust = ['10.0.0.0/33']", "export `a` trusts"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn no_file_is_in_two_exports() {
        for (inner, is_refused) in [("/srv/b", true), ("/srv", true), ("/srv2", false)] {
            let text = format!("[a]\ndirectory = '/srv'\n[b]\ndirectory = '{inner}'");
            let checked = check_nesting(&parse(&text).unwrap());
            assert_eq!(checked.is_err(), is_refused, "{inner}: {checked:?}");
        }
    }
}
