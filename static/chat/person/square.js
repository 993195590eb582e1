/** Crops the middle of a picture to a small square, in the browser so that less is sent. */

const PIXELS = 512;
const QUALITY = 0.9;

/**
 * @param {File} file
 * @returns {Promise<Blob>} the square; the file itself if the browser cannot read it, so that
 *   the server reports the problem
 */
export async function squareOf(file) {
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    return file;
  }
  const side = Math.min(picture.width, picture.height);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.min(PIXELS, side);
  const context = canvas.getContext("2d");
  if (!context) return file;
  context.drawImage(
    picture,
    (picture.width - side) / 2,
    (picture.height - side) / 2,
    side,
    side,
    0,
    0,
    canvas.width,
    canvas.height,
  );
  picture.close();
  const type = file.type === "image/jpeg" ? "image/jpeg" : "image/png";
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(blob ?? file), type, QUALITY));
}
