//! Requests: their size and their bytes.

use std::fs;
use std::path::Path;

use apus::{Bytes, Config};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use apus_command_line::failure::Failure;

/// Source of the request bytes.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Random bytes at the start of each request, to detect a reply to another request.
    Random(usize),
    /// The bytes of a file, for all requests.
    File(Bytes),
}

/// Returns the length of the longest message, in bytes.
fn max_message() -> u64 {
    Config::default().max_message()
}

/// Parses the size of a message.
///
/// # Errors
///
/// The text is not a valid message size.
pub(super) fn parse_size(text: &str) -> Result<usize, String> {
    let size = text.parse::<u64>().ok().filter(|size| *size <= max_message());
    size.and_then(|size| size.try_into().ok())
        .ok_or_else(|| format!("a message has 0 to {} bytes; try 100", max_message()))
}

impl Source {
    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if the file cannot be read, or is longer than the longest message.
    pub(super) fn file(path: &Path) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::Argument {
            argument: "--file".to_owned(),
            problem: format!("{}: {problem}", path.display()),
        };
        let unreadable =
            |error: std::io::Error| wrong(format!("{error}; name a file that can be read"));
        let length = fs::metadata(path).map_err(unreadable)?.len();
        let too_long =
            |length| format!("{length} bytes exceed the longest message ({})", max_message());
        // Devices and pipes report length 0 regardless of their content, so the limit is checked
        // again while reading.
        if length > max_message() {
            return Err(wrong(too_long(length)));
        }
        let content = read_at_most(path, max_message() + 1).map_err(unreadable)?;
        match content.len() as u64 {
            length if length > max_message() => Err(wrong(too_long(length))),
            _ => Ok(Self::File(content.into())),
        }
    }

    /// Returns the request with this number. Equal numbers give equal bytes.
    pub(super) fn request(&self, number: u64) -> Bytes {
        match self {
            Self::Random(size) => {
                let mut bytes = vec![0; *size];
                SmallRng::seed_from_u64(number).fill_bytes(&mut bytes);
                bytes.into()
            }
            Self::File(content) => content.clone(),
        }
    }

    /// Returns the size of each request, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Random(size) => *size,
            Self::File(content) => content.len(),
        }
    }
}

fn read_at_most(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut content = Vec::new();
    fs::File::open(path)?.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("message");
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn refused(path: &Path) -> String {
        let Err(Failure::Argument { argument, problem }) = Source::file(path) else {
            panic!("{path:?} was accepted");
        };
        assert_eq!(argument, "--file");
        problem
    }

    #[test]
    fn the_content_of_a_file_is_sent_unchanged() {
        let (_folder, path) = file(b"hello");
        let source = Source::file(&path).unwrap();
        assert_eq!((source.request(0), source.size()), (Bytes::from("hello"), 5));
    }

    #[test]
    fn an_empty_file_is_an_empty_message() {
        let (_folder, path) = file(b"");
        let source = Source::file(&path).unwrap();
        assert_eq!((source.request(0), source.size()), (Bytes::new(), 0));
    }

    #[test]
    fn files_that_cannot_be_messages_are_refused() {
        let (folder, path) = file(b"");
        assert!(refused(&folder.path().join("missing")).contains("No such file"));
        assert!(refused(folder.path()).contains("directory"));
        fs::File::options().write(true).open(&path).unwrap().set_len(max_message() + 1).unwrap();
        assert!(refused(&path).contains("67108865 bytes exceed"));
        // The length of a device is only known after reading.
        assert!(refused(Path::new("/dev/zero")).contains("exceed the longest message"));
    }

    #[test]
    fn random_requests_differ_from_each_other() {
        let source = Source::Random(100);
        assert_eq!(source.request(1).len(), 100);
        assert_eq!(source.request(1), source.request(1));
        assert_ne!(source.request(1), source.request(2));
    }

    #[test]
    fn sizes_are_limited_to_those_of_messages() {
        assert_eq!((parse_size("0"), parse_size("67108864")), (Ok(0), Ok(67_108_864)));
        for wrong in ["67108865", "-1", "1.5", "", "99999999999999999999"] {
            assert!(parse_size(wrong).unwrap_err().contains("try 100"), "{wrong}");
        }
    }
}
