//! Arguments passed by mount(8) to the helper of a file system type.
//!
//! ```text
//!   mount.fuse.apus HOST:PORT PATH [-sfnvrw] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
//! ```
//!
//! mount(8) runs `/sbin/mount.fuse.apus`, which is a link to this program, or a script that passes
//! this name as the first argument.

use std::ffi::OsString;
use std::path::Path;

/// Name of the link, and first argument of the script.
const NAME: &str = "mount.fuse.apus";

/// Translates arguments from mount(8) to those of `apus fs mount`; returns others unchanged.
pub(crate) fn translate(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    let is_helper = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == NAME);
    let Some(before) = arguments.iter().take(2).position(is_helper) else { return arguments };
    let mut words: Vec<OsString> =
        ["apus", "fs", "mount", "--daemon", "--quiet"].map(Into::into).into();
    let mut rest = arguments.into_iter().skip(before + 1);
    while let Some(word) = rest.next() {
        match word.to_str() {
            // The type is fixed, and mount(8) enters the namespace.
            Some("-t" | "-N") => drop(rest.next()),
            Some("-r") => words.extend(["-o".into(), "ro".into()]),
            Some("-o") => {
                words.push(word);
                words.extend(rest.next());
            }
            // Sloppy, fake, not in mtab, verbose, writable: all but "fake" have no effect.
            Some(flags)
                if flags.len() > 1
                    && flags.starts_with('-')
                    && !flags.contains(|c: char| !"-sfnvw".contains(c)) =>
            {
                words.extend(flags.contains('f').then(|| "--fake".into()));
            }
            _ => words.push(word),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let words = translate(line.split(' ').map(OsString::from));
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_helper_mounts_in_the_background() {
        assert_eq!(
            translated("/sbin/mount.fuse.apus files:4000 /mnt -sn -o rw,lost=wait -t fuse.apus"),
            "apus fs mount --daemon --quiet files:4000 /mnt -o rw,lost=wait"
        );
        assert_eq!(
            translated("/usr/bin/apus mount.fuse.apus files:4000 /mnt -r"),
            "apus fs mount --daemon --quiet files:4000 /mnt -o ro"
        );
        assert_eq!(
            translated("/sbin/mount.fuse.apus files:4000 /mnt -fv -o rw"),
            "apus fs mount --daemon --quiet files:4000 /mnt --fake -o rw"
        );
    }

    #[test]
    fn other_names_change_nothing() {
        assert_eq!(translated("apus fs mount a:1 /mnt -o ro"), "apus fs mount a:1 /mnt -o ro");
    }
}
