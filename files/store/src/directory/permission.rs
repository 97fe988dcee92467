//! Permissions of a user, as the kernel decides on them: with access control lists, and whatever
//! else this system consults.
//!
//! The calling thread becomes the user for the question and root again afterwards. A server that
//! does not run as root cannot, and decides by the mode.

use std::sync::Arc;

use apus_fs_core::rights::{Ownership, Rights, User, access};
use apus_fs_core::wire::{Errno, Ino, NodeKind};
use rustix::fs::{Access, AtFlags, CWD, Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::DirectoryStore;
use super::files::proc_path;
use super::identity::errno;

/// The calling thread as another user. Dropped, it is what it was before.
struct Disguise {
    groups: Vec<Gid>,
    gid: Gid,
    uid: Uid,
}

impl Disguise {
    /// Makes the calling thread a user, who has none of root's capabilities.
    fn of(user: &User) -> Result<Self, Errno> {
        let before = Self {
            groups: rustix::process::getgroups().map_err(errno)?,
            gid: rustix::process::getegid(),
            uid: rustix::process::geteuid(),
        };
        let groups: Vec<Gid> = user.groups.iter().copied().filter_map(group).collect();
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        set_thread_groups(&groups).map_err(errno)?;
        // Dropped on an error, `before` takes back what was changed so far.
        set_thread_res_gid(None, Some(gid), None).map_err(errno)?;
        set_thread_res_uid(None, Some(uid), None).map_err(errno)?;
        Ok(before)
    }
}

/// The highest number means "unchanged" to the system call, and is no group.
fn group(gid: u32) -> Option<Gid> {
    (gid != u32::MAX).then(|| Gid::from_raw(gid))
}

impl Drop for Disguise {
    fn drop(&mut self) {
        // The capabilities to do so are back with the first call.
        let own = set_thread_res_uid(None, Some(self.uid), None)
            .and_then(|()| set_thread_res_gid(None, Some(self.gid), None))
            .and_then(|()| set_thread_groups(&self.groups));
        own.expect("a thread may become its saved user again");
    }
}

impl DirectoryStore {
    /// Asks the kernel, if the server can act as the user.
    pub(crate) fn permits_access(
        &mut self,
        ino: Ino,
        rights: &Rights,
        wanted: u16,
    ) -> Result<bool, Errno> {
        let kind = self.kind(ino)?;
        let status = self.files.status(&self.knowledge.table, ino)?;
        let by_mode = rights.permits(Ownership::from(&status.attributes), wanted);
        let Rights::User(user) = rights else { return Ok(by_mode) };
        // Nothing follows links, and `access` would.
        if !self.files.sets_owners || kind == NodeKind::Symlink {
            return Ok(by_mode);
        }
        self.ask_kernel(ino, user, wanted)
    }

    fn ask_kernel(&mut self, ino: Ino, user: &Arc<User>, wanted: u16) -> Result<bool, Errno> {
        if user.uid == u32::MAX || user.gid == u32::MAX {
            return Ok(false);
        }
        let file = self.files.reach(&self.knowledge.table, ino)?;
        let kinds = [
            (access::READ, Access::READ_OK),
            (access::WRITE, Access::WRITE_OK),
            (access::EXECUTE, Access::EXEC_OK),
        ];
        let kinds = kinds.into_iter().filter(|(bit, _)| wanted & bit != 0);
        let kinds = kinds.fold(Access::empty(), |all, (_, kind)| all | kind);
        let disguise = Disguise::of(user)?;
        let answer = rustix::fs::accessat(CWD, proc_path(&file), kinds, AtFlags::EACCESS);
        drop(disguise);
        match answer {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => {
                Ok(false)
            }
            Err(error) => Err(errno(error)),
        }
    }
}
