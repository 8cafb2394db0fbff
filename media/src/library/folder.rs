//! One title on disk, opened for reading.

use super::LibraryError;
use crate::chunk::{Chunk, ChunkError};
use crate::layer::Layer;
use crate::manifest::{MANIFEST_FILE, MAX_MANIFEST_BYTES, Manifest, ManifestError, PackedManifest};
use bytes::Bytes;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A title's folder: the manifest, and each layer's file if it is kept here.
/// Reading needs no exclusive access, so one value may serve many threads.
#[derive(Debug)]
pub struct TitleFolder {
    path: PathBuf,
    manifest: Arc<Manifest>,
    manifest_bytes: Bytes,
    packed: OnceLock<PackedManifest>,
    files: Vec<Option<File>>,
}

impl TitleFolder {
    /// Opens a title by the path of its folder, whose name must be the title's.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, LibraryError> {
        let path = path.into();
        let manifest_bytes = read_manifest(&path)?;
        let manifest = Manifest::parse(&manifest_bytes)
            .map_err(|source| LibraryError::Manifest { path: path.clone(), source })?;
        let named = path.canonicalize().map_err(LibraryError::io("find", &path))?;
        if named.file_name() != Some(manifest.title.as_str().as_ref()) {
            return Err(LibraryError::Misnamed { path, title: manifest.title });
        }
        let open = |file: &str| {
            let path = path.join(file);
            match File::open(&path) {
                Ok(file) => Ok(Some(file)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(LibraryError::io("open", &path)(error)),
            }
        };
        let files = manifest.layers.iter().map(|layer| open(&layer.file)).collect::<Result<_, _>>()?;
        let (manifest, manifest_bytes) = (Arc::new(manifest), manifest_bytes.into());
        Ok(Self { path, manifest, manifest_bytes, packed: OnceLock::new(), files })
    }

    /// Where the title lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The title in words.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// The manifest exactly as it lies on disk.
    pub fn manifest_bytes(&self) -> &Bytes {
        &self.manifest_bytes
    }

    /// The manifest as it travels; made when it is first asked for, so ask where
    /// computing is allowed.
    pub fn packed_manifest(&self) -> PackedManifest {
        self.packed.get_or_init(|| PackedManifest::new(&self.manifest_bytes)).clone()
    }

    /// Whether the layer's file is kept here.
    pub fn has(&self, layer: Layer) -> bool {
        self.files.get(layer.index()).is_some_and(Option::is_some)
    }

    /// The layers that are kept here, Base first.
    pub fn layers(&self) -> impl Iterator<Item = Layer> {
        Layer::first(self.manifest.top_quality().layers()).filter(|layer| self.has(*layer))
    }

    /// Reads a chunk at its place in the layer's file. The length is the
    /// manifest's; whether the bytes are right is for [`TitleFolder::verified`]
    /// or [`Chunk::verify`] to say.
    pub fn read_chunk(&self, block: u32, layer: Layer) -> Result<Bytes, LibraryError> {
        let id = || self.manifest.chunk_id(block, layer);
        let info = self.manifest.chunk(block, layer).ok_or_else(|| LibraryError::NoSuchChunk(id()))?;
        let file = self.files.get(layer.index()).and_then(Option::as_ref);
        let file = file.ok_or_else(|| LibraryError::NotKept(id()))?;
        // Bounded by `MAX_CHUNK_BYTES`, which the manifest was checked for.
        let length = usize::try_from(info.length).map_err(|_| LibraryError::NoSuchChunk(id()))?;
        let mut bytes = vec![0; length];
        match file.read_exact_at(&mut bytes, info.offset) {
            Ok(()) => Ok(bytes.into()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(LibraryError::CutShort(id())),
            Err(error) => Err(LibraryError::io("read", &self.path)(error)),
        }
    }

    /// Checks bytes of a chunk against the manifest.
    ///
    /// # Errors
    /// [`ChunkError`] if they differ; a chunk that the title does not have has
    /// no length that would fit.
    pub fn verified(&self, block: u32, layer: Layer, bytes: Bytes) -> Result<Chunk, ChunkError> {
        let id = self.manifest.chunk_id(block, layer);
        match self.manifest.chunk(block, layer) {
            Some(info) => Chunk::verify(id, bytes, info.length, &info.hash),
            None => {
                Err(ChunkError::Length { id, want: 0, got: u64::try_from(bytes.len()).unwrap_or(u64::MAX) })
            }
        }
    }
}

fn read_manifest(folder: &Path) -> Result<Vec<u8>, LibraryError> {
    let path = folder.join(MANIFEST_FILE);
    let file = File::open(&path).map_err(LibraryError::io("open", &path))?;
    let mut bytes = Vec::new();
    // One byte more than is lawful shows that it is too long.
    file.take(MAX_MANIFEST_BYTES + 1).read_to_end(&mut bytes).map_err(LibraryError::io("read", &path))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_MANIFEST_BYTES {
        return Err(LibraryError::Manifest { path: folder.to_owned(), source: ManifestError::TooLong });
    }
    Ok(bytes)
}
