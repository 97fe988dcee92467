//! Shared memory files, without a name in any file system.
//!
//! The client creates a memfd, seals it and hands its descriptor over a unix socket. When the last
//! process that maps it ends, however it ends, the kernel frees it.
//!
//! The seals make access safe for the other side: without F_SEAL_SHRINK a peer could truncate the
//! file, and the next access would end this process with SIGBUS. The file must also be an ordinary
//! memory file: another file system could fail to provide a page, and huge pages could run out. A
//! peer can still punch holes, which read as 0; that is equal to writing zeros.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use super::layout::RingSizes;
use super::mapping::Memory;
use crate::error::Rejection;

/// Seals that a file of shared memory must have: both its length and its seals are fixed.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// `TMPFS_MAGIC` of statfs(2): the file system of memory files, unless they use huge pages.
const TMPFS: u64 = 0x0102_1994;

/// Creates a sealed file of `len` bytes, all 0. The name only appears in /proc.
///
/// # Errors
///
/// Any error of the system calls.
pub(crate) fn create_sealed(name: &str, len: usize) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not support NOEXEC_SEAL, which is only a precaution.
    let file = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, flags))?;
    rustix::fs::ftruncate(&file, len as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Returns whether `file` is a sealed memory file of `len` bytes, so that no access ends with
/// SIGBUS.
///
/// # Errors
///
/// Any error of the system calls, for example if the file has no seals.
pub(crate) fn is_sealed(file: &OwnedFd, len: usize) -> Result<bool, Errno> {
    // Seals are checked first, since only memory files have them. A file system of the peer's own
    // could answer the other queries, or never return from them.
    let seals = rustix::fs::fcntl_get_seals(file)?;
    let system = rustix::fs::fstatfs(file)?;
    let length = rustix::fs::fstat(file)?.st_size;
    Ok(system.f_type as u64 == TMPFS
        && seals.contains(SEALS)
        && u64::try_from(length) == Ok(len as u64))
}

/// Shared memory that is not mapped yet.
#[derive(Debug)]
pub(crate) struct Segment {
    file: OwnedFd,
    sizes: RingSizes,
}

impl Segment {
    /// Creates new memory, all 0.
    ///
    /// # Errors
    ///
    /// Any error of the system calls.
    pub(crate) fn create(sizes: RingSizes) -> Result<Self, Errno> {
        Ok(Self { file: create_sealed("apus-local", sizes.mapped())?, sizes })
    }

    /// Takes over memory that a peer has created.
    ///
    /// # Errors
    ///
    /// [`Rejection::Memory`] if the file is not a sealed memory file of the right length.
    pub(crate) fn adopt(file: OwnedFd, sizes: RingSizes) -> Result<Self, Rejection> {
        match is_sealed(&file, sizes.mapped()) {
            Ok(true) => Ok(Self { file, sizes }),
            Ok(false) | Err(_) => Err(Rejection::Memory),
        }
    }

    /// Maps the memory.
    ///
    /// # Errors
    ///
    /// Any error of mmap(2).
    pub(crate) fn map(&self) -> std::io::Result<Memory> {
        Memory::map(self.file.as_fd(), self.sizes.mapped())
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: RingSizes = RingSizes { short: 4096, bulk: 4096 };

    fn memfd(flags: MemfdFlags, seals: SealFlags, len: usize) -> OwnedFd {
        let flags = flags | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&file, len as u64).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn a_created_segment_is_adopted_and_shared() {
        let created = Segment::create(SIZES).unwrap();
        let adopted = Segment::adopt(created.as_fd().try_clone_to_owned().unwrap(), SIZES).unwrap();
        let (here, there) = (created.map().unwrap(), adopted.map().unwrap());
        here.word(4096).store(7, crate::sync::Ordering::Release);
        assert_eq!(there.word(4096).load(crate::sync::Ordering::Acquire), 7);
        let shorter = rustix::fs::ftruncate(&created, 4096);
        assert_eq!(shorter, Err(Errno::PERM), "MAPPING-2: it cannot become shorter");
    }

    #[test]
    fn an_unsafe_file_is_not_adopted() {
        let len = SIZES.mapped();
        let none = MemfdFlags::empty();
        let cases = [
            ("no seal on seals", memfd(none, SealFlags::SHRINK | SealFlags::GROW, len)),
            ("may shrink", memfd(none, SealFlags::GROW | SealFlags::SEAL, len)),
            ("shorter than announced", memfd(none, SEALS, len - 4096)),
            ("longer than announced", memfd(none, SEALS, len + 4096)),
            ("a device", std::fs::File::open("/dev/zero").unwrap().into()),
            ("a pipe", rustix::pipe::pipe().unwrap().0),
            (
                "a file on disk",
                std::fs::File::open(std::env::current_exe().unwrap()).unwrap().into(),
            ),
        ];
        for (what, file) in cases {
            assert_eq!(Segment::adopt(file, SIZES).unwrap_err(), Rejection::Memory, "{what}");
        }
    }
}
