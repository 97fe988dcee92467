//! Mountable places: `HOST:PORT`, or `HOST:PORT/NAME` if the server has named exports.

use crate::address::Address;

/// A served directory, as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    text: String,
    pub(super) server: Address,
    /// Name of the export; empty for the export without a name.
    pub(super) export: String,
}

impl Place {
    /// Parses an argument.
    ///
    /// # Errors
    ///
    /// The text is not a place; the message contains the reason.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (server, export) = text.split_once('/').unwrap_or((text, ""));
        if text.contains('/') {
            check_name(export)?;
        }
        let server = Address::parse_remote(server)?;
        Ok(Self { text: text.to_owned(), server, export: export.to_owned() })
    }

    /// Returns the argument as written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Checks the name of an export: it must not contain characters with a special meaning in a shell,
/// fstab or a path.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let most = apus_fs_core::wire::limits::MAX_EXPORT_NAME;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > most || !name.bytes().all(good) {
        return Err(format!(
            "`{name}` is no name of an export: it has 1 to {most} letters, digits, dots, dashes and underscores"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_server_and_possibly_a_name() {
        let place = Place::parse("[::1]:4000/music").unwrap();
        assert_eq!((place.server.as_str(), place.export.as_str()), ("[::1]:4000", "music"));
        let place = Place::parse("files:4000").unwrap();
        assert_eq!((place.server.as_str(), place.export.as_str()), ("files:4000", ""));
        for wrong in ["files:4000/", "files:4000/a/b", "files/music", "files:4000/a b", ":1/a"] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
    }
}
