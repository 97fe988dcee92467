//! What is sent?

use std::fs;
use std::path::Path;

use apus::{Bytes, Config};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::failure::Failure;

/// Where the bytes of requests come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Each request has its own bytes, so that a reply to another one is noticed.
    Drawn(usize),
    /// All requests have the bytes of a file.
    File(Bytes),
}

/// The longest message.
fn longest() -> u64 {
    Config::default().max_message()
}

/// A size that a message can have.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| (1..=longest()).contains(size));
    size.and_then(|size| size.try_into().ok())
        .ok_or_else(|| format!("a message has 1 to {} bytes; try 100", longest()))
}

impl Source {
    /// The bytes of that file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no message.
    pub(super) fn file(path: &Path) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::Argument {
            argument: "--file".to_owned(),
            problem: format!("{}: {problem}", path.display()),
        };
        let told = |error: std::io::Error| wrong(format!("{error}; name a file that can be read"));
        let length = fs::metadata(path).map_err(told)?.len();
        let too_long =
            |length| format!("{length} bytes are more than a message has ({})", longest());
        // A device or a pipe has length 0, and how much is in it only shows when it is read.
        if length > longest() {
            return Err(wrong(too_long(length)));
        }
        let content = read_at_most(path, longest() + 1).map_err(told)?;
        match content.len() as u64 {
            0 => Err(wrong("the file is empty, and a message has at least one byte".to_owned())),
            length if length > longest() => Err(wrong(too_long(length))),
            _ => Ok(Self::File(content.into())),
        }
    }

    /// The request with this number.
    pub(super) fn request(&self, number: u64) -> Bytes {
        match self {
            Self::Drawn(size) => {
                let mut bytes = vec![0; *size];
                SmallRng::seed_from_u64(number).fill_bytes(&mut bytes);
                bytes.into()
            }
            Self::File(content) => content.clone(),
        }
    }

    /// Bytes of each request.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Drawn(size) => *size,
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
            panic!("{path:?} is no message");
        };
        assert_eq!(argument, "--file");
        problem
    }

    #[test]
    fn the_bytes_of_a_file_are_sent_as_they_are() {
        let (_folder, path) = file(b"hello");
        let source = Source::file(&path).unwrap();
        assert_eq!((source.request(0), source.size()), (Bytes::from("hello"), 5));
    }

    #[test]
    fn files_that_are_no_messages_are_refused() {
        let (folder, path) = file(b"");
        assert!(refused(&path).contains("empty"));
        assert!(refused(&folder.path().join("missing")).contains("No such file"));
        assert!(refused(folder.path()).contains("directory"));
        fs::File::options().write(true).open(&path).unwrap().set_len(longest() + 1).unwrap();
        assert!(refused(&path).contains("67108865 bytes are more"));
        // Its length does not show before it is read.
        assert!(refused(Path::new("/dev/zero")).contains("more than a message has"));
    }

    #[test]
    fn drawn_requests_differ_from_each_other() {
        let source = Source::Drawn(100);
        assert_eq!(source.request(1).len(), 100);
        assert_eq!(source.request(1), source.request(1));
        assert_ne!(source.request(1), source.request(2));
    }

    #[test]
    fn sizes_are_those_of_messages() {
        assert_eq!((size("1"), size("67108864")), (Ok(1), Ok(67_108_864)));
        for wrong in ["0", "67108865", "-1", "1.5", "", "99999999999999999999"] {
            assert!(size(wrong).unwrap_err().contains("try 100"), "{wrong}");
        }
    }
}
