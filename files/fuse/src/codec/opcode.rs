//! Numbers of the operations.

/// Defines the operations, their numbers in `linux/fuse.h`, and the properties of a reply that
/// follow from the number alone.
macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The requested operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[non_exhaustive]
        pub enum Opcode { $($(#[$doc])* $name = $number,)* }

        impl Opcode {
            /// Every operation that the codec parses.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the operation with this number, if the codec supports it.
            pub fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Looks up a name in a directory.
    Lookup = 1,
    /// Drops references to an inode.
    Forget = 2,
    /// Reads attributes.
    Getattr = 3,
    /// Changes attributes.
    Setattr = 4,
    /// Reads the target of a symbolic link.
    Readlink = 5,
    /// Creates a symbolic link.
    Symlink = 6,
    /// Creates a file, device, socket or FIFO without opening it.
    Mknod = 8,
    /// Creates a directory.
    Mkdir = 9,
    /// Removes a name that is no directory.
    Unlink = 10,
    /// Removes an empty directory.
    Rmdir = 11,
    /// Renames, replacing the node that has the new name.
    Rename = 12,
    /// Creates a hard link.
    Link = 13,
    /// Opens a file.
    Open = 14,
    /// Reads from an open file.
    Read = 15,
    /// Writes to an open file.
    Write = 16,
    /// Reads totals of the file system.
    Statfs = 17,
    /// Closes an open file: its last descriptor was closed.
    Release = 18,
    /// Makes a file durable.
    Fsync = 20,
    /// Sets an extended attribute.
    Setxattr = 21,
    /// Reads an extended attribute.
    Getxattr = 22,
    /// Lists extended attributes.
    Listxattr = 23,
    /// Removes an extended attribute.
    Removexattr = 24,
    /// One descriptor of an open file is closed.
    Flush = 25,
    /// Starts a connection.
    Init = 26,
    /// Opens a directory.
    Opendir = 27,
    /// Reads names of a directory.
    Readdir = 28,
    /// Closes a directory.
    Releasedir = 29,
    /// Makes a directory durable.
    Fsyncdir = 30,
    /// Tests for a lock.
    Getlk = 31,
    /// Takes or releases a lock without waiting.
    Setlk = 32,
    /// Takes a lock, waiting for it.
    Setlkw = 33,
    /// Checks permissions.
    Access = 34,
    /// Creates and opens a file.
    Create = 35,
    /// Interrupts another request.
    Interrupt = 36,
    /// Ends a connection.
    Destroy = 38,
    /// A device control request.
    Ioctl = 39,
    /// Queries the readiness of an open file.
    Poll = 40,
    /// Drops references to several inodes.
    BatchForget = 42,
    /// Allocates or frees space of a file.
    Fallocate = 43,
    /// Reads names of a directory with attributes.
    Readdirplus = 44,
    /// Renames, with flags.
    Rename2 = 45,
    /// Searches for data or holes.
    Lseek = 46,
    /// Copies between files; the reply has 32 bits for a length.
    CopyFileRange = 47,
    /// Makes the file system durable.
    Syncfs = 50,
    /// Creates and opens a file without a name.
    Tmpfile = 51,
    /// Reads extended attributes of statx(2).
    Statx = 52,
    /// Copies between files; the reply has 64 bits for a length.
    CopyFileRange64 = 53,
}

impl Opcode {
    /// Returns the number of the operation in `linux/fuse.h`.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Returns whether the kernel waits for a reply.
    ///
    /// It does not for forgets and interrupts: a reply to one would be taken as the reply to
    /// another request.
    pub fn expects_reply(self) -> bool {
        !matches!(self, Self::Forget | Self::BatchForget | Self::Interrupt)
    }
}
