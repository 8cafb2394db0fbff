//! Making a whole title of chunks that come in any order, and reading those that
//! are here already.

use super::{Library, LibraryError, TitleFolder, TitleWriter};
use crate::chunk::Chunk;
use crate::container::random_access_index;
use crate::layer::Layer;
use crate::manifest::{Manifest, ManifestError};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// A title with all of its layers on its way in, out of sight until it is whole.
/// Dropping it removes what came.
#[derive(Debug)]
pub struct TitleGatherer {
    writer: TitleWriter,
    manifest: Arc<Manifest>,
    manifest_bytes: Bytes,
    here: BTreeSet<(u32, Layer)>,
}

/// Reads chunks of a title that is not whole yet, and goes on when it is.
#[derive(Clone, Debug)]
pub struct Gathered {
    manifest: Arc<Manifest>,
    files: Arc<Vec<File>>,
}

impl TitleGatherer {
    /// Begins; a title of this name that is there is replaced at the end.
    ///
    /// # Errors
    /// The manifest cannot be believed; what the disk refuses.
    pub fn create(library: &Library, manifest_bytes: Bytes) -> Result<(Self, Gathered), LibraryError> {
        let bad = |source| LibraryError::Manifest { path: library.path().to_owned(), source };
        let manifest = Arc::new(Manifest::parse(&manifest_bytes).map_err(bad)?);
        let names: Vec<String> = manifest.layers.iter().map(|info| info.file.clone()).collect();
        let mut writer = TitleWriter::create(library, manifest.title.clone(), true, &names)?;
        let mut files = Vec::new();
        for (layer, info) in all_layers(&manifest).zip(&manifest.layers) {
            writer.append(layer, &info.init)?;
            let path = writer.folder().join(&info.file);
            files.push(File::open(&path).map_err(LibraryError::io("open", &path))?);
        }
        let gathered = Gathered { manifest: Arc::clone(&manifest), files: Arc::new(files) };
        Ok((Self { writer, manifest, manifest_bytes, here: BTreeSet::new() }, gathered))
    }

    /// A chunk, which was checked against the manifest, at its place.
    ///
    /// # Errors
    /// The title has no such chunk; what the disk refuses.
    pub fn put(&mut self, chunk: &Chunk) -> Result<(), LibraryError> {
        let (block, layer) = (chunk.id().block, chunk.id().layer);
        let known = self.manifest.chunk_id(block, layer) == *chunk.id();
        let place = self.manifest.chunk(block, layer).filter(|_| known);
        let place = place.ok_or_else(|| LibraryError::NoSuchChunk(chunk.id().clone()))?;
        self.writer.put(layer, place.offset, chunk.bytes())?;
        self.here.insert((block, layer));
        Ok(())
    }

    /// Shows the title.
    ///
    /// # Errors
    /// Chunks are missing; what the disk refuses.
    pub fn finish(mut self) -> Result<TitleFolder, LibraryError> {
        let manifest = Arc::clone(&self.manifest);
        for (layer, info) in all_layers(&manifest).zip(&manifest.layers) {
            let mut end = 0;
            let mut places = Vec::new();
            for (number, block) in (0_u32..).zip(&manifest.blocks) {
                let missing = || LibraryError::CutShort(manifest.chunk_id(number, layer));
                let here = self.here.contains(&(number, layer));
                let chunk = block.chunks.get(layer.index()).filter(|_| here).ok_or_else(missing)?;
                places.push((block.start, chunk.offset));
                end = chunk.offset.saturating_add(chunk.length);
            }
            let index = random_access_index(info.delay, places).map_err(|error| {
                let why = ManifestError::Inconsistent(error.to_string());
                LibraryError::Manifest { path: self.writer.folder().to_owned(), source: why }
            })?;
            self.writer.put(layer, end, &index)?;
        }
        self.writer.finish_with(&self.manifest_bytes)
    }
}

fn all_layers(manifest: &Manifest) -> impl Iterator<Item = Layer> + use<> {
    Layer::first(manifest.top_quality().layers())
}

impl Gathered {
    /// Reads a chunk that was put at its place.
    ///
    /// # Errors
    /// There is no such chunk, or not yet; what the disk refuses.
    pub fn read(&self, block: u32, layer: Layer) -> Result<Bytes, LibraryError> {
        let id = || self.manifest.chunk_id(block, layer);
        let info = self.manifest.chunk(block, layer).ok_or_else(|| LibraryError::NoSuchChunk(id()))?;
        let file = self.files.get(layer.index()).ok_or_else(|| LibraryError::NoSuchChunk(id()))?;
        // Bounded by `MAX_CHUNK_BYTES`, which the manifest was checked for.
        let length = usize::try_from(info.length).map_err(|_| LibraryError::NoSuchChunk(id()))?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, info.offset).map_err(|_| LibraryError::CutShort(id()))?;
        Ok(bytes.into())
    }
}
