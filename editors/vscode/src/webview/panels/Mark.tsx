// The product's mark.
//
// Rule: the same paths as in `icons/kode.svg`, in the color of the text around.

export function Mark() {
    return (
        <svg class="welcome-mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
            <path d="M5.500 4v16M6.500 14.200l6.700-6M9.800 11.400l6.900 8.600" />
            <path
                class="welcome-star"
                d="M18 1.800c.4 2.600 1.500 3.700 4.100 4.100-2.600.4-3.700 1.500-4.100 4.100-.4-2.600-1.500-3.700-4.100-4.100 2.600-.4 3.700-1.500 4.100-4.100z"
            />
        </svg>
    );
}
