//! Properties of a mount, as options in the forms that mount(2) and `fusermount3` take.

use super::error::MountError;

/// Method of mounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountMethod {
    /// By mount(2) and, if that is not permitted, by `fusermount3`.
    #[default]
    Auto,
    /// By mount(2): as root, or in a user namespace with its own mount namespace.
    Direct,
    /// By the set-user-id program `fusermount3`.
    Helper,
}

/// Properties of a mount.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MountOptions {
    /// Method of mounting.
    pub method: MountMethod,
    /// Mounts read-only.
    pub read_only: bool,
    /// Users other than the mounting user have access. For a user without privileges,
    /// `/etc/fuse.conf` must have `user_allow_other`.
    pub allow_other: bool,
    /// The kernel checks permissions against modes. Without it, the file system checks them.
    pub default_permissions: bool,
    /// Longest read in bytes.
    pub max_read: u32,
    /// The source that the table of mounts shows.
    pub fs_name: String,
    /// The type that the table of mounts shows after `fuse.`.
    pub subtype: String,
}

impl Default for MountOptions {
    /// Writable, for the user that mounts, permissions checked by the kernel; reads of 1 MiB; type
    /// `fuse.apus`.
    fn default() -> Self {
        Self {
            method: MountMethod::default(),
            read_only: false,
            allow_other: false,
            default_permissions: true,
            max_read: 1 << 20,
            fs_name: "apus".to_owned(),
            subtype: "apus".to_owned(),
        }
    }
}

impl MountOptions {
    /// Checks the texts.
    pub(crate) fn check(&self) -> Result<(), MountError> {
        let bad = |text: &str| text.is_empty() || text.contains(|c: char| c == ',' || c < ' ');
        match [("fs_name", &self.fs_name), ("subtype", &self.subtype)]
            .into_iter()
            .find(|(_, text)| bad(text) || text.contains('\\'))
        {
            Some((option, _)) => Err(MountError::Option { option }),
            None => Ok(()),
        }
    }

    /// The options that have the same form in both methods of mounting.
    pub(crate) fn common(&self) -> String {
        let mut options = format!("max_read={}", self.max_read);
        for (set, name) in
            [(self.allow_other, ",allow_other"), (self.default_permissions, ",default_permissions")]
        {
            if set {
                options.push_str(name);
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_text_cannot_add_an_option() {
        let options = MountOptions { fs_name: "a,allow_other".into(), ..MountOptions::default() };
        assert!(matches!(options.check(), Err(MountError::Option { option: "fs_name" })));
        assert!(MountOptions::default().check().is_ok());
    }

    #[test]
    fn options_are_listed_once() {
        let options = MountOptions { allow_other: true, ..MountOptions::default() };
        assert_eq!(options.common(), "max_read=1048576,allow_other,default_permissions");
    }
}
