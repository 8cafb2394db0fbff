//! Making a node's folder from chunks that come over the network.

use super::{Library, LibraryError, TitleFolder, TitleWriter};
use crate::chunk::Chunk;
use crate::container::random_access_index;
use crate::layer::Layer;
use crate::manifest::{Manifest, ManifestError};
use std::sync::Arc;

/// One layer of a title on its way in, out of sight until it is whole. Dropping
/// it removes what came. The file is the same as where it was copied from.
#[derive(Debug)]
pub struct LayerReceiver {
    writer: TitleWriter,
    layer: Layer,
    manifest: Arc<Manifest>,
    manifest_bytes: Vec<u8>,
    next: u32,
}

impl LayerReceiver {
    /// Begins; a title of this name that is there is replaced at the end.
    ///
    /// # Errors
    /// The manifest cannot be believed or has no such layer; what the disk
    /// refuses.
    pub fn create(library: &Library, manifest_bytes: &[u8], layer: Layer) -> Result<Self, LibraryError> {
        let bad = |source| LibraryError::Manifest { path: library.path().to_owned(), source };
        let manifest = Manifest::parse(manifest_bytes).map_err(bad)?;
        let files: Vec<String> = manifest.layers.iter().map(|info| info.file.clone()).collect();
        let info = manifest.layers.get(layer.index());
        let info = info.ok_or_else(|| LibraryError::NoSuchChunk(manifest.chunk_id(0, layer)))?;
        let mut writer = TitleWriter::create_some(library, manifest.title.clone(), true, &files, |of| {
            of == layer.index()
        })?;
        writer.append(layer, &info.init)?;
        let manifest_bytes = manifest_bytes.to_vec();
        Ok(Self { writer, layer, manifest: Arc::new(manifest), manifest_bytes, next: 0 })
    }

    /// The title in words.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// The next chunk, which was checked against the manifest.
    ///
    /// # Errors
    /// Another chunk than the next one, or one that would not lie where the
    /// manifest says; what the disk refuses.
    pub fn append(&mut self, chunk: &Chunk) -> Result<(), LibraryError> {
        let id = self.manifest.chunk_id(self.next, self.layer);
        let place = self.manifest.chunk(self.next, self.layer).filter(|_| *chunk.id() == id);
        let place = place.ok_or_else(|| LibraryError::NoSuchChunk(chunk.id().clone()))?;
        if self.writer.append(self.layer, chunk.bytes())? != place.offset {
            let why = ManifestError::Inconsistent(format!("{id} does not follow what is before it"));
            return Err(LibraryError::Manifest { path: self.writer.folder().to_owned(), source: why });
        }
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// Shows the title, with this layer alone.
    ///
    /// # Errors
    /// Chunks are missing; what the disk refuses.
    pub fn finish(mut self) -> Result<TitleFolder, LibraryError> {
        if self.next < self.manifest.block_count() {
            return Err(LibraryError::CutShort(self.manifest.chunk_id(self.next, self.layer)));
        }
        let delay = self.manifest.layers.get(self.layer.index()).map_or(0, |info| info.delay);
        let blocks = self.manifest.blocks.iter();
        let places =
            blocks.filter_map(|block| Some((block.start, block.chunks.get(self.layer.index())?.offset)));
        let index = random_access_index(delay, places).map_err(|error| {
            let why = ManifestError::Inconsistent(error.to_string());
            LibraryError::Manifest { path: self.writer.folder().to_owned(), source: why }
        })?;
        self.writer.append(self.layer, &index)?;
        self.writer.finish_with(&self.manifest_bytes)
    }
}

/// Deletes one layer of a title, and the title with its last layer. Whether
/// there was such a layer.
///
/// # Errors
/// What the disk refuses.
pub fn remove_layer(library: &Library, title: &crate::TitleName, layer: Layer) -> Result<bool, LibraryError> {
    if !library.contains(title) {
        return Ok(false);
    }
    let folder = library.title(title)?;
    let file = folder.manifest().layers.get(layer.index()).filter(|_| folder.has(layer));
    let Some(file) = file.map(|info| folder.path().join(&info.file)) else { return Ok(false) };
    if folder.layers().count() > 1 {
        std::fs::remove_file(&file).map_err(LibraryError::io("delete", &file))?;
    } else {
        super::writer::remove_title(library, title)?;
    }
    Ok(true)
}
