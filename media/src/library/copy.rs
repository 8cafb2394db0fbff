//! Making a node's folder: the manifest and only some of the layers.

use super::{Library, LibraryError, TitleFolder, TitleWriter};
use crate::layer::Layer;
use std::fs;

/// Puts a title with only `layers` into another library. Files are linked
/// where the file system allows it and copied elsewhere, and are never written
/// to again. A title of this name that is there is replaced if `replace` is
/// set and refused otherwise.
///
/// # Errors
/// [`LibraryError::NotKept`] if one of the layers is not in `from`.
pub fn copy_layers(
    from: &TitleFolder,
    layers: &[Layer],
    to: &Library,
    replace: bool,
) -> Result<TitleFolder, LibraryError> {
    let manifest = from.manifest();
    let writer = TitleWriter::create(to, manifest.title.clone(), replace, &[])?;
    for layer in layers {
        let info = manifest.layers.get(layer.index()).filter(|_| from.has(*layer));
        let info = info.ok_or_else(|| LibraryError::NotKept(manifest.chunk_id(0, *layer)))?;
        let source = from.path().join(&info.file);
        let target = writer.folder().join(&info.file);
        if fs::hard_link(&source, &target).is_err() {
            fs::copy(&source, &target).map_err(LibraryError::io("copy", &source))?;
            let copied = fs::File::open(&target).and_then(|file| file.sync_all());
            copied.map_err(LibraryError::io("write", &target))?;
        }
    }
    writer.finish_with(from.manifest_bytes())
}
